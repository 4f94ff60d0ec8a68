package reading_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// TestBombs: for user data that expands to much more than its size, or is nested too deeply, errors and problems stay
// short.
func TestBombs(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const head = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
	var aliases strings.Builder // expands to 10^10 elements
	aliases.WriteString(head + "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := '1'; i <= '9'; i++ {
		below := "*a" + string(i-1)
		aliases.WriteString("a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat(below+",", 9) + below + "]\n")
	}
	mime := "X"
	for range 30 {
		mime = "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n" + mime + "\n--b--\n"
	}
	for name, own := range map[string]string{
		"gzip":          base64.StdEncoding.EncodeToString(packed.Bytes()),
		"aliases":       aliases.String(),
		"lists in YAML": head + "spec: " + strings.Repeat("[", 7000) + strings.Repeat("]", 7000),
		"lists in TOML": "[settings]\na = " + strings.Repeat("[", 7000) + strings.Repeat("]", 7000),
		"tables":        "[settings]\na = " + strings.Repeat("{a=", 3000) + "1" + strings.Repeat("}", 3000),
		"keys":          "[settings]\n" + strings.Repeat("a.", 7000) + "a = 1",
		"messages":      mime,
		"substitutions": "#!/bin/bash\n" + strings.Repeat("$(", 7000),
	} {
		for _, family := range []string{catalog.AL2, catalog.AL2023, catalog.Bottlerocket, catalog.Windows2022, catalog.Custom} {
			in := userdata.Input{Family: family, Own: own}
			if data, err := bootstrap.UserData(node(family, own)); err == nil && family != catalog.Custom {
				in.Data = data
			} else if err != nil && len(err.Error()) > 500 {
				t.Errorf("%s, %s: an error of %d bytes, want at most 500", name, family, len(err.Error()))
			}
			for _, p := range reading.Read(in).Problems {
				if len(p.String()) > 1000 {
					t.Errorf("%s, %s: a problem of %d bytes, want at most 1000", name, family, len(p.String()))
				}
			}
		}
	}
}
