package instance

import (
	"math"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestPodAddresses compares the number of pod addresses with AWS's tables. m5.large has 3 interfaces with 10 addresses
// each, t3.small and t2.small have 3 with 4 each, and c5.metal has 15 with 50 each. Only t2.small is a Xen type.
func TestPodAddresses(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	enabled := func(names ...string) map[string]string {
		out := map[string]string{}
		for _, n := range names {
			out[n] = "true"
		}
		return out
	}
	for _, tt := range []struct {
		instanceType, ipv6 string
		environment        map[string]string
		want               int64
	}{
		{"m5.large", "", nil, 27},
		{"m5.large", "", map[string]string{EnvCustomNetworking: "false", EnvPrefixes: "false"}, 27},
		{"m5.large", "", enabled(EnvCustomNetworking), 18},
		{"m5.large", "", enabled(EnvPrefixes), 432},
		{"m5.large", "", enabled(EnvCustomNetworking, EnvPrefixes), 288},
		{"t3.small", "", enabled(EnvPrefixes), 144},
		{"t2.small", "", enabled(EnvPrefixes), 9},
		{"c5.metal", "", nil, 735},
		{"c5.metal", "", enabled(EnvPrefixes), 11760},
		{"m5.large", "2600::1", enabled(EnvIPv6, EnvPrefixes), math.MaxInt64},
		{"m5.large", "", enabled(EnvIPv6, EnvPrefixes), 0},
	} {
		facts, ok := table.Facts(tt.instanceType)
		if !ok {
			t.Fatalf("the catalog has no %s", tt.instanceType)
		}
		b := &boot{Instance: Instance{Facts: facts, IPv6: tt.ipv6}}
		if got := b.podAddresses(tt.environment); got != tt.want {
			t.Errorf("%s %v %s: %d addresses for pods, want %d", tt.instanceType, tt.environment, tt.ipv6, got, tt.want)
		}
	}
}

// TestBootOfIPv6 boots each family in an IPv6 cluster. An instance without an IPv6 address must not start a kubelet.
func TestBootOfIPv6(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ family, userData, wantError string }{
		"AL2023": {"AL2023", strings.ReplaceAll(nodeConfigPart, "10.100.0.0/16", "fd30:1c53:5f8a::/108"), "StatusCode: 404"},
		"AL2": {"AL2", strings.ReplaceAll(al2Script, "--dns-cluster-ip '10.100.0.10'", "--ip-family 'ipv6' --dns-cluster-ip 'fd30:1c53:5f8a::a'"),
			"Exited with error on line"},
		"Bottlerocket": {"Bottlerocket", strings.ReplaceAll(rocketSettings, "10.100.0.10", "fd30:1c53:5f8a::a"), "StatusCode: 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, console := bootWith(t, tt.family, tt.userData, fakeServices{}, func(i *Instance) { i.IPv6 = "2600:1f18::7" })
			if s == nil {
				t.Fatalf("no kubelet starts:\n%s", console)
			}
			if s.IP != "2600:1f18::7" || len(s.ClusterDNS) != 1 || s.ClusterDNS[0] != "fd30:1c53:5f8a::a" {
				t.Errorf("address %s, cluster DNS %v; want the IPv6 addresses", s.IP, s.ClusterDNS)
			}
			if s, console := bootWith(t, tt.family, tt.userData, fakeServices{}); s != nil || !strings.Contains(console, tt.wantError) {
				t.Errorf("without an IPv6 address, a kubelet starts: %t; want no kubelet and %q in the console:\n%s",
					s != nil, tt.wantError, console)
			}
		})
	}
}
