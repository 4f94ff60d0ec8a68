package v1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAlias(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want      Alias
		wantError bool
	}{
		"al2@latest":          {want: Alias{Family: AMIFamilyAL2, Version: "latest"}},
		"al2023@v20250501":    {want: Alias{Family: AMIFamilyAL2023, Version: "v20250501"}},
		"bottlerocket@v1.2.3": {want: Alias{Family: AMIFamilyBottlerocket, Version: "v1.2.3"}},
		"windows2025@latest":  {want: Alias{Family: AMIFamilyWindows2025, Version: "latest"}},
		"al2023@v1@v2":        {want: Alias{Family: AMIFamilyAL2023, Version: "v1@v2"}}, // all after the first @
		"":                    {wantError: true},
		"al2023":              {wantError: true},
		"al2023@":             {wantError: true},
		"AL2023@latest":       {wantError: true}, // upper case
		"custom@latest":       {wantError: true}, // a family without aliases
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAlias(text)
			if (err != nil) != test.wantError {
				t.Fatalf("error %v, want an error: %t", err, test.wantError)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err == nil && got.String() != text {
				t.Errorf("String returns %q, want %q", got, text)
			}
		})
	}
}

func TestResolvedAMIFamily(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec EC2NodeClassSpec
		want string
	}{
		"family of the alias": {
			spec: EC2NodeClassSpec{AMISelectorTerms: []AMISelectorTerm{{Alias: "bottlerocket@latest"}}},
			want: AMIFamilyBottlerocket,
		},
		"amiFamily overrides the alias": {
			spec: EC2NodeClassSpec{
				AMIFamily: new(AMIFamilyCustom), AMISelectorTerms: []AMISelectorTerm{{Alias: "al2023@latest"}},
			},
			want: AMIFamilyCustom,
		},
		"Custom without amiFamily and alias": {
			spec: EC2NodeClassSpec{AMISelectorTerms: []AMISelectorTerm{{ID: "ami-1"}}},
			want: AMIFamilyCustom,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.spec.ResolvedAMIFamily(); got != test.want {
				t.Errorf("family %q, want %q", got, test.want)
			}
		})
	}
}

// TestStatusConditions checks that Ready depends on CapacityReservationsReady only if it is gated. In both cases this
// condition is not True, and all others are.
func TestStatusConditions(t *testing.T) {
	t.Parallel()
	ungated := []string{
		ConditionAMIsReady, ConditionSubnetsReady, ConditionSecurityGroupsReady,
		ConditionInstanceProfileReady, ConditionValidationSucceeded, ConditionPlacementGroupReady,
	}
	for name, gated := range map[string][]string{
		"reserved capacity disabled": nil,
		"reserved capacity enabled":  {ConditionCapacityReservationsReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := &EC2NodeClass{}
			class.StatusConditions(gated...).Start(class.CreationTimestamp.Time)
			for _, condition := range ungated {
				class.StatusConditions(gated...).SetTrue(class.CreationTimestamp.Time, condition)
			}
			if got, want := class.StatusConditions(gated...).IsReady(), gated == nil; got != want {
				t.Errorf("ready %t, want %t", got, want)
			}
		})
	}
}
