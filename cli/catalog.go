package cli

import (
	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/view"
)

func newCatalog() *cobra.Command {
	var (
		market marketFlags
		out    output
	)
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "List what can be bought in a region",
		Long: `Lists the instance types of a region that can be nodes, with their labels, what
a node of an EC2NodeClass that sets nothing (Amazon Linux 2023) offers to pods,
zones, ways of paying and prices.

The embedded table needs no AWS and ages. It knows no spot prices: spot is
reckoned at the on-demand price. The last line says where prices are from, and
how old they are. The JSON can be given back with --catalog.`,
		Example: `  joiner catalog --region eu-central-1
  joiner catalog --from aws -o json > types.json
  joiner plan -f manifests/ --catalog types.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			goods, err := market.open(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c, err := goods(catalog.Settings{})
			if err != nil {
				return err
			}
			text := func() string {
				out := view.Types(c).String() + view.Count(len(c.Types), "type") + "\n"
				if market.prices != "" {
					out += "prices " + market.prices + "\n"
				}
				return out
			}
			return out.write(cmd.OutOrStdout(), text, func() any { return view.CatalogOf(c) })
		},
	}
	market.flags(cmd.Flags(), fromEmbedded)
	out.flag(cmd.Flags())
	return cmd
}
