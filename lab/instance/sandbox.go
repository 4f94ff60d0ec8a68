package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// maxOutput is the maximum output of a script in bytes: the size of the console buffer.
const maxOutput = 64 << 10

// program emulates a program of the image. It returns the exit code.
type program func(args []string, stdin io.Reader, stdout, stderr io.Writer) int

// scriptRunner runs shell scripts with emulated programs and files.
type scriptRunner struct {
	boot     *boot
	programs map[string]program // by path or name
	files    *files
	console  *lineWriter
}

// newScriptRunner returns a scriptRunner with a new file system and the programs that all images have.
func (b *boot) newScriptRunner() *scriptRunner {
	s := &scriptRunner{boot: b, programs: map[string]program{}, files: newFiles()}
	s.console = &lineWriter{left: maxOutput, say: func(line string) { b.logCloudInit("%s", line) }}
	for name, p := range b.utilities(s.files) {
		s.programs[name] = p
	}
	return s
}

// run runs one script, and returns an error if the script fails. As in a shell, the statements before a syntax error
// are executed. A script for an interpreter that is not a shell is skipped.
func (s *scriptRunner) run(ctx context.Context, name string, script []byte) error {
	text := strings.ReplaceAll(string(script), "\r\n", "\n")
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "#!") {
		return fmt.Errorf("exec format error: %q", firstBytes(script, 24))
	}
	if !strings.Contains(first, "sh") {
		s.boot.logCloudInit("the lab runs only shell scripts, and skips this script: %s", first)
		return nil
	}
	runner, err := s.runner(first)
	if err != nil {
		return err
	}
	err = s.runStatements(ctx, runner, name, text)
	s.console.flush()
	var exit interp.ExitStatus
	switch {
	case errors.As(err, &exit):
		return fmt.Errorf("exit status %d", uint8(exit))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the lab stopped the script, because it ran for longer than " + scriptTimeout.String())
	}
	return err
}

// runStatements runs the statements of a script one by one. After that, it runs the commands of the script's sinks.
func (s *scriptRunner) runStatements(ctx context.Context, runner *interp.Runner, name, text string) (err error) {
	var sinks []*sink
	defer func() { err = errors.Join(err, s.runSinks(ctx, sinks)) }()
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	for statement, err := range parser.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			s.boot.logCloudInit("%s: %s", name, bashError(err))
			return interp.ExitStatus(2)
		}
		readBeforeWrite(statement)
		sinks = append(sinks, s.replaceProcessSubstitutions(statement, len(sinks))...)
		if err := runner.Run(ctx, statement); err != nil || runner.Exited() {
			return err
		}
	}
	return nil
}

// readBeforeWrite rewrites `echo "$(jq . FILE)" > FILE` so that jq reads FILE before > empties it, as in a shell.
// The interpreter would open FILE for writing before it runs jq. Therefore the output goes to a second file, which then
// replaces FILE.
func readBeforeWrite(statement *syntax.Stmt) {
	syntax.Walk(statement, func(node syntax.Node) bool {
		s, ok := node.(*syntax.Stmt) // of interest: with a single redirection, > FILE
		if !ok || len(s.Redirs) != 1 || s.Redirs[0].Op != syntax.RdrOut || strings.HasPrefix(s.Redirs[0].Word.Lit(), "/dev/") {
			return true
		}
		call, ok := s.Cmd.(*syntax.CallExpr) // of interest: echo or printf with $(…)
		if !ok || len(call.Args) < 2 || !slices.Contains([]string{"echo", "printf"}, call.Args[0].Lit()) || !hasSubstitution(call) {
			return true
		}
		const tempFile = "/tmp/.words"
		target := s.Redirs[0].Word
		s.Redirs[0].Word = literal(tempFile)
		s.Cmd = &syntax.Block{Stmts: []*syntax.Stmt{
			{Cmd: call, Redirs: s.Redirs},
			{Cmd: &syntax.CallExpr{Args: []*syntax.Word{literal("mv"), literal(tempFile), target}}},
		}}
		s.Redirs = nil
		return false
	})
}

func hasSubstitution(call *syntax.CallExpr) (found bool) {
	syntax.Walk(call, func(node syntax.Node) bool {
		_, isSubst := node.(*syntax.CmdSubst)
		found = found || isSubst
		return !found
	})
	return found
}

// literal returns a word of a script without special characters.
func literal(word string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: word}}}
}

// sink is a process substitution >(…) of a script: its commands, and the emulated file in which their input is kept
// until the script has ended. The lab uses no pipe for the input: a pipe would need a file of this computer, and would
// never be closed after `exec >`.
type sink struct {
	file     string
	commands []*syntax.Stmt
}

// replaceProcessSubstitutions replaces each >(…) in a statement by the file of a new sink. earlier is the
// number of the script's earlier sinks.
func (s *scriptRunner) replaceProcessSubstitutions(statement *syntax.Stmt, earlier int) []*sink {
	var sinks []*sink
	syntax.Walk(statement, func(node syntax.Node) bool {
		redirect, ok := node.(*syntax.Redirect)
		if !ok || redirect.Word == nil || len(redirect.Word.Parts) != 1 {
			return true
		}
		inner, ok := redirect.Word.Parts[0].(*syntax.ProcSubst)
		if !ok || inner.Op != syntax.CmdOut {
			return true
		}
		file := fmt.Sprintf("/dev/fd/%d", 63-earlier-len(sinks)) // bash counts down from 63
		sinks = append(sinks, &sink{file: file, commands: inner.Stmts})
		redirect.Word.Parts[0] = &syntax.Lit{Value: file}
		return false
	})
	return sinks
}

// runSinks runs the commands of each sink with the content of the sink's file as input.
func (s *scriptRunner) runSinks(ctx context.Context, sinks []*sink) error {
	for _, k := range sinks {
		data, _ := s.files.read(k.file)
		runner, err := s.runner("", interp.StdIO(bytes.NewReader(data), s.console, s.console))
		if err != nil {
			return err
		}
		for _, statement := range k.commands {
			if err := runner.Run(ctx, statement); err != nil {
				break // a failed sink does not make the script fail
			}
		}
	}
	return nil
}

// bashError returns a syntax error in the wording of bash.
func bashError(err error) string {
	var syntaxError syntax.ParseError
	if !errors.As(err, &syntaxError) {
		return err.Error()
	}
	for _, quote := range []string{"'", "\"", "`"} {
		if strings.Contains(syntaxError.Text, "without closing quote `"+quote) {
			return fmt.Sprintf("line %d: unexpected EOF while looking for matching `%s'", syntaxError.Pos.Line(), quote)
		}
	}
	return fmt.Sprintf("line %d: syntax error: %s", syntaxError.Pos.Line(), syntaxError.Text)
}

// runner returns an interpreter with the flags in shebang, the first line of a script. An empty shebang has no flags.
func (s *scriptRunner) runner(shebang string, more ...interp.RunnerOption) (*interp.Runner, error) {
	b := s.boot
	options := []interp.RunnerOption{
		interp.Env(expand.ListEnviron("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "PWD=/",
			"INSTANCE_ID="+b.ID)),
		interp.Dir("/"),
		interp.StdIO(nil, s.console, s.console),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
		interp.OpenHandler(s.open),
		interp.StatHandler(s.stat),
		interp.ReadDirHandler2(s.files.readDir),
		interp.AccessHandler(func(ctx context.Context, name string, _ interp.AccessMode) error {
			_, err := s.stat(ctx, name, true)
			return err
		}),
	}
	if _, flags, ok := strings.Cut(shebang, " "); ok && strings.HasPrefix(flags, "-") {
		options = append(options, interp.Params(strings.Fields(flags)...))
	}
	runner, err := interp.New(append(options, more...)...)
	if err != nil {
		return nil, fmt.Errorf("start shell: %w", err)
	}
	return runner, nil
}

// exec runs an emulated program, or a program that a script has downloaded. A downloaded program does nothing, or fails
// if it is for another architecture. exec reports every other program as not found.
func (s *scriptRunner) exec(ctx context.Context, args []string) error {
	h, name := interp.HandlerCtx(ctx), args[0]
	if arch, ok := s.downloadedArch(ctx, name); ok {
		if arch != s.boot.Image.Architecture {
			fmt.Fprintf(h.Stderr, "line %d: %s: cannot execute binary file: Exec format error\n", h.Pos.Line(), name)
			return interp.ExitStatus(126)
		}
		return nil
	}
	p := s.programs[name]
	if p == nil { // /usr/bin/jq is jq, but /opt/jq does not exist
		p = s.programs[path.Base(name)]
	}
	isPath := strings.Contains(name, "/")
	isInOtherFolder := isPath && s.programs[name] == nil && !isStandardPath(name)
	if p == nil || isInOtherFolder {
		reason := "command not found"
		if isPath {
			reason = "No such file or directory"
		}
		fmt.Fprintf(h.Stderr, "line %d: %s: %s\n", h.Pos.Line(), name, reason)
		return interp.ExitStatus(127)
	}
	if code := p(args[1:], h.Stdin, h.Stdout, h.Stderr); code != 0 {
		return interp.ExitStatus(uint8(code))
	}
	return nil
}

// downloadedArch returns the architecture of a program that a script has downloaded; false for any other program.
func (s *scriptRunner) downloadedArch(ctx context.Context, name string) (arch string, ok bool) {
	places := []string{absolute(ctx, name)}
	if !strings.Contains(name, "/") {
		places = []string{"/usr/local/bin/" + name, "/usr/bin/" + name}
	}
	for _, place := range places {
		if data, found := s.files.read(place); found {
			if arch, ok = strings.CutPrefix(string(data), executablePrefix); ok {
				return arch, true
			}
		}
	}
	return "", false
}

func isStandardPath(name string) bool {
	switch path.Dir(name) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin":
		return true
	}
	return false
}

func (s *scriptRunner) open(ctx context.Context, name string, flag int, _ os.FileMode) (io.ReadWriteCloser, error) {
	name = absolute(ctx, name)
	switch name {
	case "/dev/null":
		return devNull{}, nil
	case "/dev/console", "/dev/tty", "/dev/tty1", "/dev/kmsg", "/dev/stdout", "/dev/stderr":
		return devConsole{s.console}, nil
	}
	return s.files.open(name, flag)
}

func (s *scriptRunner) stat(ctx context.Context, name string, _ bool) (fs.FileInfo, error) {
	name = absolute(ctx, name)
	if _, ok := s.programs[name]; ok {
		return fileInfo{name: path.Base(name), mode: 0o755}, nil
	}
	if isStandardPath(name) {
		if _, ok := s.programs[path.Base(name)]; ok {
			return fileInfo{name: path.Base(name), mode: 0o755}, nil
		}
	}
	return s.files.stat(name)
}

// absolute returns the absolute path of name, which can be relative to the script's working folder.
func absolute(ctx context.Context, name string) string {
	if !path.IsAbs(name) {
		name = path.Join(interp.HandlerCtx(ctx).Dir, name)
	}
	return path.Clean(name)
}

// lineWriter splits output into lines. It discards output beyond a limit.
type lineWriter struct {
	mu   sync.Mutex
	rest []byte       // the last line so far, without a newline
	left int          // number of bytes until the limit
	say  func(string) // receives the lines
}

// Write adds output. It never fails, because a full console does not cause an error in a program.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	if len(p) > l.left {
		p = p[:l.left]
	}
	l.left -= len(p)
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return n, nil
		}
		l.say(string(l.rest[:i]))
		l.rest = l.rest[i+1:]
	}
}

// flush passes the last line to say if the line has no newline.
func (l *lineWriter) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.say(string(l.rest))
		l.rest = nil
	}
}

type devConsole struct{ io.Writer }

func (devConsole) Read([]byte) (int, error) { return 0, io.EOF }
func (devConsole) Close() error             { return nil }

type devNull struct{}

func (devNull) Read([]byte) (int, error)    { return 0, io.EOF }
func (devNull) Write(p []byte) (int, error) { return len(p), nil }
func (devNull) Close() error                { return nil }

type fileInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
