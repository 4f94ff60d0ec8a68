package instance

import (
	"math"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestPodAddresses compares the number of pod addresses with AWS's tables. m5.large has 3 interfaces with 10 addresses
// each, t3.small 3 with 4, and c5.metal 15 with 50. t2.small has 3 with 4 and is not a Nitro type.
func TestPodAddresses(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	on := func(names ...string) map[string]string {
		out := map[string]string{}
		for _, n := range names {
			out[n] = "true"
		}
		return out
	}
	for _, tt := range []struct {
		kind, six   string
		environment map[string]string
		want        int64
	}{
		{"m5.large", "", nil, 27},
		{"m5.large", "", map[string]string{EnvCustom: "false", EnvPrefixes: "false"}, 27},
		{"m5.large", "", on(EnvCustom), 18},
		{"m5.large", "", on(EnvPrefixes), 432},
		{"m5.large", "", on(EnvCustom, EnvPrefixes), 288},
		{"t3.small", "", on(EnvPrefixes), 144},
		{"t2.small", "", on(EnvPrefixes), 9},
		{"c5.metal", "", nil, 735},
		{"c5.metal", "", on(EnvPrefixes), 11760},
		{"m5.large", "2600::1", on(EnvIPv6, EnvPrefixes), math.MaxInt64},
		{"m5.large", "", on(EnvIPv6, EnvPrefixes), 0},
	} {
		facts, ok := table.Facts(tt.kind)
		if !ok {
			t.Fatalf("the catalog has no %s", tt.kind)
		}
		b := &boot{Instance: Instance{Facts: facts, IPv6: tt.six}}
		if got := b.podAddresses(tt.environment); got != tt.want {
			t.Errorf("%s %v %s: %d addresses for pods, want %d", tt.kind, tt.environment, tt.six, got, tt.want)
		}
	}
}

// TestBootOfIPv6 boots each family in an IPv6 cluster, with an IPv6 address and without.
func TestBootOfIPv6(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ family, userData, console string }{
		"AL2023": {"AL2023", strings.ReplaceAll(nodeConfigPart, "10.100.0.0/16", "fd30:1c53:5f8a::/108"), "StatusCode: 404"},
		"AL2": {"AL2", strings.ReplaceAll(al2Script, "--dns-cluster-ip '10.100.0.10'", "--ip-family 'ipv6' --dns-cluster-ip 'fd30:1c53:5f8a::a'"),
			"Exited with error on line"},
		"Bottlerocket": {"Bottlerocket", strings.ReplaceAll(rocketSettings, "10.100.0.10", "fd30:1c53:5f8a::a"), "StatusCode: 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, console := bootWith(t, c.family, c.userData, around{}, func(i *Instance) { i.IPv6 = "2600:1f18::7" })
			if s == nil {
				t.Fatal(console)
			}
			if s.IP != "2600:1f18::7" || len(s.ClusterDNS) != 1 || s.ClusterDNS[0] != "fd30:1c53:5f8a::a" {
				t.Errorf("address %s, cluster DNS %v", s.IP, s.ClusterDNS)
			}
			if s, console := bootWith(t, c.family, c.userData, around{}); s != nil || !strings.Contains(console, c.console) {
				t.Errorf("without an IPv6 address: a kubelet starts: %t\n%s", s != nil, console)
			}
		})
	}
}
