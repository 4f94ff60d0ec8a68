package conformance

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
)

// unrepresentable lists the cases whose object changes when Joiner's Go types decode and encode it, with the reasons.
var unrepresentable = map[string]string{
	"nodeclaim.yaml/all fields":                        "a quantity that is a JSON number becomes a string, which the immutable spec rejects",
	"ec2nodeclass.yaml/a volume size without a number": "the schema accepts the size Ti, which is decoded as the quantity 0",
}

// TestTypes decodes every stored object of testdata into Joiner's Go types, and encodes the Go value again. The
// stored object must accept an update with the result: a program that updates one field must not change the others.
func TestTypes(t *testing.T) {
	t.Parallel()
	types := map[string]func() any{
		"nodepools.karpenter.sh":           func() any { return &karpv1.NodePool{} },
		"nodeclaims.karpenter.sh":          func() any { return &karpv1.NodeClaim{} },
		"nodeoverlays.karpenter.sh":        func() any { return &karpv1alpha1.NodeOverlay{} },
		"ec2nodeclasses.karpenter.k8s.aws": func() any { return &awsv1.EC2NodeClass{} },
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := pairs(t)
	for _, file := range files {
		suite := load(t, file)
		definition := compile(t, all[suite.Definition].theirs)
		for _, test := range suite.Cases {
			name := filepath.Base(file) + "/" + test.Name
			if len(test.Reject) > 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				stored := runCase(t, definition, suite.Base, test).stored
				first := types[suite.Definition]()
				read(t, stored, first)
				written := write(t, first)
				definition.Read(written)
				_, wantErr := unrepresentable[name]
				if errs := definition.Update(t.Context(), written, stored); len(errs) > 0 != wantErr {
					t.Errorf("updating with the encoded object: %v; an error is expected: %t", errs.ToAggregate(), wantErr)
				}
				second := types[suite.Definition]()
				read(t, written, second)
				if diff := gocmp.Diff(first, second); diff != "" {
					t.Errorf("the encoded object differs from the stored one (-read +written):\n%s", diff)
				}
			})
		}
	}
}

// read decodes an object into a Go value. Unknown fields are an error.
func read(t *testing.T, object map[string]any, value any) {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		t.Fatalf("read %s: %v", data, err)
	}
}

func write(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}
