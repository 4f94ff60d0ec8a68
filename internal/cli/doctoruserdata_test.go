package cli

import (
	"strings"
	"testing"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestUserDataOfDoctor: each problem of a class's user data becomes evidence for its check, once and not per
// architecture. Correct user data gives no evidence. The evidence contains no secrets of the user data.
func TestUserDataOfDoctor(t *testing.T) {
	t.Parallel()
	const lostTaint = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args --node-labels=a=b --register-with-taints=karpenter.sh/unregistered=true:NoExecute\nexport TOKEN=verysecret\n"
	for name, c := range map[string]struct {
		family, data string
		check        string // "" for no problem
	}{
		"correct":              {"AL2023", "#!/bin/bash\necho hello\n", ""},
		"no taint":             {"Custom", "#!/bin/bash\nexport TOKEN=verysecret\n/etc/eks/bootstrap.sh prod\n", "TAINT-1"},
		"misspelt setting":     {"Bottlerocket", "[settings.kubernetes]\nmax-pod = 20\n", "TAINT-3"},
		"taint lost in quotes": {"Custom", lostTaint, "TAINT-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := &awsv1.EC2NodeClass{}
			class.Name, class.Spec.AMIFamily, class.Spec.UserData = "web", &c.family, &c.data
			r := renderFlags{}
			r.cluster.Name = "prod"
			if err := r.completeCluster(); err != nil {
				t.Fatal(err)
			}
			got := r.problemsOf(class)
			if c.check == "" && len(got) > 0 {
				t.Errorf("correct user data has the problems %v", got)
			}
			seen := map[diagnosis.UserDataProblem]bool{}
			for _, p := range got {
				if seen[p] || p.Class != "web" || strings.Contains(p.Sentence+p.Fix, "verysecret") {
					t.Errorf("reported twice, for another class, or with a secret: %+v", p)
				}
				seen[p] = true
			}
			if c.check != "" && (len(got) == 0 || got[0].ID != c.check || got[0].Certainty != diagnosis.Certain || got[0].Sentence == "") {
				t.Errorf("problems %+v, want a certain one of check %s first", got, c.check)
			}
		})
	}
}
