package shell

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/nodeadm"
)

// readNodeadmCall processes a call of nodeadm in a script. It reads the NodeConfig that the call names, if the script
// has written that file.
func readNodeadmCall(r *userdata.Reader, c command) {
	for i, w := range c.words {
		source, ok := strings.CutPrefix(w.Text, "--config-source=")
		if !ok && (w.Text == "-c" || w.Text == "--config-source") && i+1 < len(c.words) {
			source, ok = c.words[i+1].Text, true
		}
		if path, isFile := strings.CutPrefix(source, "file://"); ok && isFile {
			if config, isWritten := r.Files[path]; isWritten {
				nodeadm.Read(r, []userdata.Text{config})
				return
			}
		}
	}
	if slices.ContainsFunc(c.words, func(w userdata.Word) bool { return w.Text == "init" || w.Text == "install" }) {
		r.Unevaluated = append(r.Unevaluated, "nodeadm is called at "+c.at.String()+" with a configuration that is not in the user data")
	}
}
