package controlplane

import (
	"fmt"
	"io"
	"os"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdLog returns etcd's logger, which writes to a file. Fatal errors, for example a full disk, are also printed to the
// terminal before this process ends, because the file is removed with the lab.
func etcdLog(path string) (*zap.Logger, error) {
	c := zap.NewProductionConfig()
	c.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	c.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	c.OutputPaths = []string{path}
	c.ErrorOutputPaths = c.OutputPaths
	log, err := c.Build(zap.WithFatalHook(fatalHook{os.Stderr, os.Exit}))
	if err != nil {
		return nil, fmt.Errorf("open the log of etcd: %w", err)
	}
	return log, nil
}

// fatalHook ends this process, in which etcd runs, after a fatal error of etcd. The guard process then ends the other
// programs and removes the lab's folder.
type fatalHook struct {
	to   io.Writer
	exit func(code int)
}

// OnWrite is called after a fatal entry was written to the log.
func (l fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	// The leading line break ends the status line of the demo, if there is one.
	fmt.Fprintf(l.to, "\nlab: etcd ended: %s\n", withErrors(entry.Message, fields))
	l.exit(1)
}

func withErrors(message string, fields []zapcore.Field) string {
	parts := []string{message}
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			parts = append(parts, err.Error())
		}
	}
	return strings.Join(parts, ": ")
}
