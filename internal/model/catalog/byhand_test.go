package catalog

import (
	_ "embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

//go:embed testdata/sizes.txt
var sizesByHand string

//go:embed testdata/labels.txt
var labelsByHand string

//go:embed testdata/pods.txt
var podsOfImages string

// sizeRow is one row of testdata/sizes.txt. The head of the file describes the columns and how they are computed.
// Kube… are reserved for Kubernetes; CPU and Free… are allocatable. CPU is in millicores, memory in MiB.
type sizeRow struct {
	Type, Node        string
	VCPUs, MiB        int64
	Addresses         string // "3x10": network interfaces, addresses of each
	Memory, Pods      int64
	KubeCPU, KubeMi   int64
	CPU, FreeMi       int64
	Disk, FreeDisk    string
	Devices           map[string]int64
	family, condition string // both sides of the "+" in Node
}

// TestSizesByHand compares sizes with testdata/sizes.txt, whose numbers were computed without this package.
func TestSizesByHand(t *testing.T) {
	t.Parallel()
	types, families := map[string]bool{}, map[string]int{}
	for _, want := range sizeRows(t) {
		types[want.Type] = true
		families[want.family]++
		f := factsOf(t, want.Type)
		set := want.settings(t)
		if why := Incompatible(f, set); why != "" {
			t.Errorf("%s cannot be a %s node: %s", want.Type, want.Node, why)
		}
		typ, kube := Build(f, set, "us-east-1"), kubeReserved(f, set)
		got := want // keeps Type, Node and the parts of Node
		got.VCPUs, got.MiB = f.Processor.VCPUs, f.MemoryMiB
		got.Addresses = fmt.Sprintf("%dx%d", defaultCard(f).MaxInterfaces, f.Network.IPv4PerInterface)
		got.Memory, got.Pods = typ.Capacity.Memory/mib, typ.Capacity.Pods
		got.KubeCPU, got.KubeMi = kube.CPU, kube.Memory/mib
		got.CPU, got.FreeMi = typ.Allocatable.CPU, typ.Allocatable.Memory/mib
		got.Disk = amountLike(t, want.Disk, typ.Capacity.EphemeralStorage)
		got.FreeDisk = amountLike(t, want.FreeDisk, typ.Allocatable.EphemeralStorage)
		got.Devices = map[string]int64{}
		for name, n := range amountsOf(typ.Capacity) {
			if strings.Contains(name, "/") {
				got.Devices[name] = n
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(sizeRow{})); diff != "" {
			t.Errorf("%s, %s (-by hand +catalog):\n%s", want.Type, want.Node, diff)
		}
		if rest := typ.Capacity.Memory%mib + typ.Allocatable.Memory%mib; rest != 0 {
			t.Errorf("%s, %s: memory is not a whole number of mebibytes", want.Type, want.Node)
		}
		for name, n := range want.Devices { // devices are not reserved
			if free := typ.Allocatable.Of(name); free != n {
				t.Errorf("%s, %s: %d of %d %s are allocatable, want all", want.Type, want.Node, free, n, name)
			}
		}
		if typ.Capacity.CPU != 1000*want.VCPUs || typ.Allocatable.Pods != want.Pods {
			t.Errorf("%s, %s: capacity %v, allocatable %v; want the CPU and pods of the row",
				want.Type, want.Node, typ.Capacity, typ.Allocatable)
		}
	}
	if len(types) < 60 || families[AL2023] < 60 || families[Bottlerocket] < 60 || families[Windows2022] < 40 {
		t.Errorf("%d types, rows by family %v; want at least 60 types, 60 rows per Linux family, 40 of Windows2022",
			len(types), families)
	}
}

func sizeRows(t *testing.T) []sizeRow {
	t.Helper()
	var rows []sizeRow
	for line := range strings.Lines(sizesByHand) {
		w := strings.Fields(line)
		if w[0] == "#" || w[0] == "type" {
			continue
		}
		n := func(i int) int64 { return parseInt(t, w[i]) }
		r := sizeRow{
			Type: w[0], Node: w[1], VCPUs: n(2), MiB: n(3), Addresses: w[4], Memory: n(5), Pods: n(6),
			KubeCPU: n(7), KubeMi: n(8), CPU: n(9), FreeMi: n(10), Disk: w[11], FreeDisk: w[12], Devices: map[string]int64{},
		}
		r.family, r.condition, _ = strings.Cut(r.Node, "+")
		for _, device := range w[13:] {
			name, count, ok := strings.Cut(device, "=")
			if !ok {
				continue // "-": none
			}
			if !strings.Contains(name, "/") {
				name = "vpc.amazonaws.com/" + name
			}
			r.Devices[name] = parseInt(t, count)
		}
		rows = append(rows, r)
	}
	return rows
}

func parseInt(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

func (r sizeRow) settings(t *testing.T) Settings {
	t.Helper()
	set := Settings{Family: r.family}
	name, value, isNumber := strings.Cut(r.condition, "=")
	var n int64
	if isNumber {
		n = parseInt(t, value)
	}
	switch name {
	case "":
	case "RAID0":
		set.InstanceStore = RAID0
	case "maxPods":
		set.MaxPods = &n
	case "podsPerCore":
		set.PodsPerCore = n
	case "reservedENIs":
		set.ReservedENIs = n
	default:
		t.Errorf("%s, %s: unknown setting", r.Type, r.Node)
	}
	return set
}

// amountLike returns want if this quantity equals the number of bytes. Otherwise it returns the number of bytes as
// text.
func amountLike(t *testing.T, want string, bytes int64) string {
	t.Helper()
	n, err := resources.Parse(resources.EphemeralStorage, want)
	if err != nil {
		t.Error(err)
	}
	if n == bytes {
		return want
	}
	return number(bytes)
}

// TestLabelsByHand compares every label of varied types with testdata/labels.txt.
func TestLabelsByHand(t *testing.T) {
	t.Parallel()
	compared, defaults := 0, ""
	for line := range strings.Lines(labelsByHand) {
		name, rest, ok := strings.Cut(line, ": ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		if name == "default" {
			defaults = rest
			continue
		}
		compared++
		linux := map[string]string{
			"kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": name, "topology.kubernetes.io/region": "eu-west-1",
			"karpenter.k8s.aws/instance-tenancy": "default",
		}
		for _, label := range strings.Fields(defaults + rest) {
			key, value, _ := strings.Cut(label, "=")
			if key == "arch" {
				linux["kubernetes.io/arch"] = value
			} else {
				linux["karpenter.k8s.aws/instance-"+key] = value
			}
		}
		for family, windowsBuild := range map[string]string{
			AL2: "", AL2023: "", Bottlerocket: "", Custom: "", Windows2019: "10.0.17763", Windows2022: "10.0.20348", Windows2025: "10.0.26100",
		} {
			want := maps.Clone(linux)
			if windowsBuild != "" {
				want["kubernetes.io/os"], want["node.kubernetes.io/windows-build"] = "windows", windowsBuild
			}
			got := Build(factsOf(t, name), Settings{Family: family}, "eu-west-1").Labels
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-by hand +catalog):\n%s", name, family, diff)
			}
		}
	}
	if compared < 60 {
		t.Errorf("compared %d types, want at least 60", compared)
	}
}

// TestPodsOfImages compares the maximum numbers of pods with the list in the EKS images. This checks the interfaces and
// addresses of each type in the table against Amazon's data.
func TestPodsOfImages(t *testing.T) {
	t.Parallel()
	lists := map[string]map[string]int64{} // pods by family, then by size; -1: not in Amazon's list
	for line := range strings.Lines(podsOfImages) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		list := map[string]int64{}
		for _, word := range words[1:] {
			if size, ok := strings.CutPrefix(word, "-"); ok {
				list[size] = -1
			} else {
				size, pods, _ := strings.Cut(word, "=")
				list[size] = parseInt(t, pods)
			}
		}
		lists[words[0]] = list
	}
	compared := 0
	for _, f := range table(t).Types() {
		family, size, _ := strings.Cut(f.Name, ".")
		list, hasFamily := lists[family]
		if !hasFamily {
			continue
		}
		want, hasSize := list[size]
		if !hasSize { // as many as in most families
			if f.BareMetal {
				size = "metal"
			}
			want = lists["usual"][size]
		}
		if want < 0 {
			continue
		}
		compared++
		if got := Build(f, Settings{Family: AL2}, "r").Capacity.Pods; got != want {
			t.Errorf("%s: %d pods, want %d", f.Name, got, want)
		}
	}
	if compared < 950 {
		t.Errorf("compared %d types, want at least 950", compared)
	}
}
