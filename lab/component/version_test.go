package component

import (
	"os"
	"strings"
	"testing"
)

func TestVersionMatchesGoMod(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/kubernetes " + Version + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod lacks %q, want Version to match it", want)
	}
}
