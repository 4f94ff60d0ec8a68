package cli

import (
	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

func newCatalog() *cobra.Command {
	var (
		market marketFlags
		out    format
	)
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "List the instance types and offerings of a region",
		Long: `Lists the instance types of a region that can be nodes, with their labels, zones,
capacity types, prices, and allocatable resources. The resources are those of a node
of an EC2NodeClass with default settings (Amazon Linux 2023).

The embedded table works without AWS, but is only as new as this program. It has no
spot prices: spot is estimated as a share of the on-demand price (--spot-estimate).
The last line shows the source and the age of the prices. joiner plan --catalog reads
the JSON output.`,
		Example: `  joiner catalog --region eu-central-1
  joiner catalog --from aws -o json > types.json
  joiner plan -f manifests/ --catalog types.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			build, err := market.open(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c, err := build(catalog.Settings{})
			if err != nil {
				return err
			}
			text := func() string {
				table := output.TypesTable(c).Fit(out.width(cmd.OutOrStdout())) + output.Count(len(c.Types), "type") + "\n"
				if market.prices != nil {
					table += "On-demand prices: " + market.prices.OnDemand + ". Spot prices: " + market.prices.Spot + ".\n"
				}
				return table
			}
			return out.write(cmd.OutOrStdout(), text, func() any { return output.CatalogOf(c) })
		},
	}
	market.flags(cmd.Flags(), fromEmbedded)
	out.flag(cmd.Flags())
	return cmd
}
