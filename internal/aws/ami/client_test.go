package ami_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// fixture is an emulated region with subnets and images, and a client.
type fixture struct {
	*ami.Client
	server *emulator.Server
	region *world.Region
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	w, estate, err := world.New(time.Now(), world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	server := &emulator.Server{World: w}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	return fixture{ami.New(cfg), server, estate.Region}
}

// The labels of instance types of each kind, as in the catalog.
var (
	amd64  = requirements.Labels{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
	arm64  = requirements.Labels{"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}
	nvidia = requirements.Labels{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "karpenter.k8s.aws/instance-gpu-count": "1"}
	neuron = requirements.Labels{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"karpenter.k8s.aws/instance-accelerator-count": "1"}
	armGPU  = requirements.Labels{"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "karpenter.k8s.aws/instance-gpu-count": "1"}
	windows = requirements.Labels{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "windows",
		"node.kubernetes.io/windows-build": "10.0.20348"}
)

// names returns the names of the images that each kind of instance type starts from.
func names(images []ami.Image) map[string]string {
	out := map[string]string{}
	for kind, labels := range map[string]requirements.Labels{"amd64": amd64, "arm64": arm64, "nvidia": nvidia,
		"neuron": neuron, "armGPU": armGPU, "windows": windows} {
		if i, ok := ami.For(images, labels); ok {
			out[kind] = i.Name
		}
	}
	return out
}

func TestAliases(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for name, c := range map[string]struct {
		alias, version string
		want           map[string]string // by kind of instance type: a part of the image's name
		wantReason     string
	}{
		"al2023": {"al2023@latest", "1.33",
			map[string]string{"amd64": "al2023-x86_64-standard-1.33-v20260715", "arm64": "al2023-arm64-standard-1.33",
				"nvidia": "x86_64-nvidia", "neuron": "x86_64-neuron", "armGPU": "arm64-nvidia"}, ""},
		"al2023, pinned": {"al2023@v20260601", "1.33",
			map[string]string{"amd64": "x86_64-standard-1.33-v20260601", "arm64": "arm64-standard-1.33-v20260601",
				"nvidia": "x86_64-nvidia-1.33-v20260601", "neuron": "x86_64-neuron-1.33-v20260601", "armGPU": "arm64-nvidia-1.33-v20260601"}, ""},
		"al2": {"al2@latest", "1.32",
			map[string]string{"amd64": "amazon-eks-node-1.32", "arm64": "amazon-eks-arm64-node", "nvidia": "amazon-eks-gpu-node",
				"neuron": "amazon-eks-gpu-node"}, ""},
		"al2, pinned": {"al2@v20260601", "1.32",
			map[string]string{"amd64": "amazon-eks-node-1.32-v20260601", "arm64": "arm64-node-1.32-v20260601",
				"nvidia": "gpu-node-1.32-v20260601", "neuron": "gpu-node-1.32-v20260601"}, ""},
		"bottlerocket": {"bottlerocket@latest", "1.33",
			map[string]string{"amd64": "k8s-1.33-x86_64-v1.53.0", "arm64": "k8s-1.33-arm64", "nvidia": "nvidia-x86_64",
				"neuron": "k8s-1.33-x86_64", "armGPU": "nvidia-arm64"}, ""},
		"bottlerocket, pinned": {"bottlerocket@v1.52.0", "1.33",
			map[string]string{"amd64": "x86_64-v1.52.0", "arm64": "arm64-v1.52.0", "nvidia": "v1.52.0", "neuron": "v1.52.0",
				"armGPU": "nvidia-arm64-v1.52.0"}, ""},
		"al2, too new": {"al2@latest", "1.33", nil, "UnsupportedAlias"},
		"windows 2022": {"windows2022@latest", "1.33",
			map[string]string{"windows": "Windows_Server-2022-English-Core-EKS_Optimized-1.33-"}, ""},
		"windows 2019":    {"windows2019@latest", "1.33", map[string]string{}, ""}, // the labels of windows are those of a 2022 build
		"windows, pinned": {"windows2022@v1", "1.33", nil, "UnsupportedAlias"},
		"windows 2025":    {"windows2025@latest", "1.33", nil, "UnsupportedAlias"},
		"unknown family":  {"al3@latest", "1.33", nil, "UnsupportedAlias"},
		"no release":      {"al2023", "1.33", nil, "UnsupportedAlias"},
		"no such release": {"al2023@v19990101", "1.33", nil, "AMINotFound"},
		"no Kubernetes":   {"al2023@latest", "", nil, "UnsupportedAlias"},
		"old Kubernetes":  {"al2023@latest", "1.10", nil, "AMINotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			images, unmatched, err := s.Images(t.Context(), c.version, []ami.Term{{Alias: c.alias}})
			if err != nil {
				t.Fatal(err)
			}
			if c.wantReason != "" {
				if len(images) != 0 || len(unmatched) != 1 || unmatched[0].Reason != c.wantReason || !strings.Contains(unmatched[0].String(), c.alias) {
					t.Errorf("images %v, unmatched %v; want no image and reason %s", images, unmatched, c.wantReason)
				}
				return
			}
			got := names(images)
			if !strings.HasPrefix(c.alias, "windows") {
				delete(got, "windows") // only a Windows EC2NodeClass has instance types with these labels
			}
			if len(got) != len(c.want) {
				t.Errorf("images by kind of instance type are %v, want %v", got, c.want)
			}
			for kind, want := range c.want {
				if !strings.Contains(got[kind], want) {
					t.Errorf("instance types of kind %s start from %q, want an image with %q in its name", kind, got[kind], want)
				}
			}
		})
	}
}

// TestFailedLookup checks that one failed lookup of a parameter fails the whole call, because a shorter list would look
// like drift. Later calls return all images, and use the cache.
func TestFailedLookup(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.server.Do(func(w *world.World, _ time.Time) {
		w.Faults.CallErrors = []*world.CallError{{Call: "ssm:GetParameter", Skip: 2, Count: 1, Status: 500, Code: "InternalServerError", Message: "oh"}}
	})
	terms := []ami.Term{{Alias: "al2023@latest"}}
	images, _, err := s.Images(t.Context(), "1.33", terms)
	if !awserr.Is(err, awserr.Transient) || images != nil {
		t.Fatalf("%d images, %v; want no image and a transient error", len(images), err)
	}
	if images, _, err = s.Images(t.Context(), "1.33", terms); err != nil || len(images) != 5 {
		t.Errorf("the next call returns %d images, %v; want 5", len(images), err)
	}
	before := s.server.Calls()["ssm:GetParameter"]
	if _, _, err = s.Images(t.Context(), "1.33", terms); err != nil || s.server.Calls()["ssm:GetParameter"] != before {
		t.Errorf("a cached parameter was read from SSM again, or the call failed: %v", err)
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	register := func(name, arch string, created time.Time, owner string, tags map[string]string) string {
		i := world.Image{Name: name, Architecture: arch, CreatedAt: created, OwnerID: owner, Tags: tags, Public: true, RootDevice: "/dev/xvda"}
		// An ID has 17 digits; these differ by day and owner.
		i.ID = "ami-0" + strings.Repeat("0", 8) + strings.ReplaceAll(created.Format("01-02"), "-", "") + arch[len(arch)-2:] + owner[10:]
		s.region.Images.Register(i)
		return i.ID
	}
	ours, otherAccount := emulator.DefaultAccount, "999988887777"
	team := map[string]string{"team": "a"}
	old := register("golden-1", "x86_64", day(1), ours, team)
	newer := register("golden-2", "x86_64", day(2), ours, team)
	arm := register("golden-3", "arm64", day(3), ours, team)
	foreign := register("golden-9", "x86_64", day(9), otherAccount, nil)
	if _, err := s.region.SSM.PutParameter(day(1), world.Parameter{Name: "/team/ami", Value: old}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.region.SSM.PutParameter(day(1), world.Parameter{Name: "/team/text", Value: "hello"}, true); err != nil {
		t.Fatal(err)
	}
	variants := map[string]string{ // the names show which images have drivers; those are newer than the plain image
		"plain":  register("bottlerocket-aws-k8s-1.36-x86_64-v1.53.0-a", "x86_64", day(4), ours, map[string]string{"set": "b"}),
		"nvidia": register("bottlerocket-aws-k8s-1.36-nvidia-x86_64-v1.53.0-b", "x86_64", day(5), ours, map[string]string{"set": "b"}),
		"neuron": register("mine-neuron-x86_64", "x86_64", day(6), ours, map[string]string{"set": "b"}),
		"gpu":    register("amazon-eks-gpu-node-1.32", "x86_64", day(7), ours, map[string]string{"alone": "c"}),
	}
	images, _, err := s.Images(t.Context(), "1.33", []ami.Term{{Tags: map[string]string{"set": "b"}}})
	if err != nil || len(images) != 3 {
		t.Fatalf("images %v, %v; want 3 images", images, err)
	}
	for kind, labels := range map[string]requirements.Labels{"plain": amd64, "nvidia": nvidia, "neuron": neuron} {
		if got, ok := ami.For(images, labels); !ok || got.ID != variants[kind] {
			t.Errorf("instance types of kind %s start from %s, want the image for this kind", kind, got.Name)
		}
	}
	images, _, err = s.Images(t.Context(), "1.33", []ami.Term{{Tags: map[string]string{"alone": "c"}}})
	if got, ok := ami.For(images, amd64); err != nil || !ok || got.ID != variants["gpu"] {
		t.Errorf("the only selected image, one with drivers, is not used for types without accelerator: %v, %v", images, err)
	}
	for name, c := range map[string]struct {
		terms         []ami.Term
		want          []string
		wantUnmatched string
	}{
		"id":                  {[]ami.Term{{ID: old}}, []string{old}, ""},
		"tags":                {[]ami.Term{{Tags: team}}, []string{arm, newer}, ""},
		"any tag value":       {[]ami.Term{{Tags: map[string]string{"team": "*"}}}, []string{arm, newer}, ""},
		"name":                {[]ami.Term{{Name: "golden-*"}}, []string{arm, newer}, ""}, // not the image of another account
		"name and owner":      {[]ami.Term{{Name: "golden-*", Owner: otherAccount}}, []string{foreign}, ""},
		"name and tags":       {[]ami.Term{{Name: "golden-1", Tags: team}}, []string{old}, ""},
		"parameter":           {[]ami.Term{{SSMParameter: "/team/ami"}}, []string{old}, ""},
		"parameter with text": {[]ami.Term{{SSMParameter: "/team/text"}}, nil, `"hello"`},
		"no such parameter":   {[]ami.Term{{SSMParameter: "/team/none"}}, nil, "no such parameter"},
		"one of two":          {[]ami.Term{{ID: old}, {Name: "no-such-image"}}, []string{old}, "name=no-such-image"},
		"no such id":          {[]ami.Term{{ID: "ami-0123456789abcdef0"}}, nil, "id=ami-0123456789abcdef0"},
		"malformed id":        {[]ami.Term{{ID: "ami-xyz"}}, nil, "id=ami-xyz"},
		"only an owner":       {[]ami.Term{{Owner: "self"}}, nil, "the term is empty"},
		"older and newer":     {[]ami.Term{{ID: old}, {ID: newer}}, []string{newer}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			images, unmatched, err := s.Images(t.Context(), "1.33", c.terms)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, i := range images {
				ids = append(ids, i.ID)
			}
			if diff := cmp.Diff(c.want, ids); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if c.wantUnmatched == "" && len(unmatched) > 0 || c.wantUnmatched != "" &&
				(len(unmatched) != 1 || !strings.Contains(unmatched[0].String(), c.wantUnmatched)) {
				t.Errorf("the unmatched terms are %v, want %q (empty: none)", unmatched, c.wantUnmatched)
			}
		})
	}
}

func TestDeprecated(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	now := time.Now().UTC()
	past, future := now.Add(-time.Hour), now.Add(time.Hour)
	for id, c := range map[string]struct{ created, deprecated time.Time }{
		"ami-00000000000000001": {now.Add(-48 * time.Hour), future}, "ami-00000000000000002": {now.Add(-24 * time.Hour), past},
	} {
		s.region.Images.Register(world.Image{ID: id, Name: id, Architecture: "x86_64", CreatedAt: c.created, DeprecatedAt: c.deprecated,
			OwnerID: emulator.DefaultAccount, Tags: map[string]string{"x": "y"}, RootDevice: "/dev/xvda"})
	}
	images, _, err := s.Images(t.Context(), "1.33", []ami.Term{{Tags: map[string]string{"x": "y"}}})
	if err != nil || len(images) != 1 || images[0].ID != "ami-00000000000000001" || images[0].Deprecated {
		t.Errorf("%+v, %v; want the older image, which is not deprecated", images, err)
	}
	images, _, err = s.Images(t.Context(), "1.33", []ami.Term{{ID: "ami-00000000000000002"}})
	if err != nil || len(images) != 1 || !images[0].Deprecated {
		t.Errorf("%+v, %v; want the deprecated image, which the term selects by id", images, err)
	}
}
