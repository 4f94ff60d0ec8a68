package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

// versionFacts is the output of joiner version -o json.
type versionFacts struct {
	Version  string `json:"version"`  // release, and the commit if it is known
	Go       string `json:"go"`       // "go1.27.3"
	Platform string `json:"platform"` // "linux/arm64"
}

func newVersion(version string) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := versionFacts{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			return out.write(cmd.OutOrStdout(), func() string { return "joiner " + version + "\n" }, func() any { return facts })
		},
	}
	out.flag(cmd.Flags())
	return cmd
}
