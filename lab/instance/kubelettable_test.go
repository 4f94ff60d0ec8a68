package instance

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	v1beta1 "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/kubernetes/pkg/features" // the kubelet's gates
)

var rewriteTables = flag.Bool("rewrite", false, "write the tables of the kubelet's fields and feature gates again")

// TestKubeletTables checks that the product's tables of kubelet fields and feature gates, which validate user data,
// match the kubelet.
func TestKubeletTables(t *testing.T) {
	t.Parallel()
	fields := map[string]string{}
	addFields(fields, "", reflect.TypeFor[v1beta1.KubeletConfiguration](), 0)
	var gates strings.Builder
	all := utilfeature.DefaultMutableFeatureGate.GetAll()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "AllAlpha" || name == "AllBeta" { // groups of gates
			continue
		}
		fmt.Fprintf(&gates, "%s%s\n", name, lockedTo(all[name]))
	}
	var table strings.Builder
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&table, "%s %s\n", path, fields[path])
	}
	for file, want := range map[string]string{"kubeletfields.txt": table.String(), "kubeletgates.txt": gates.String()} {
		path := "../../internal/node/userdata/kubelet/" + file
		if *rewriteTables {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the kubelet: run in lab: go test ./instance -run TestKubeletTables -rewrite", path)
		}
	}
}

// lockedTo returns the fixed value of a locked gate, after a space. It returns an empty text for other gates.
func lockedTo(spec featuregate.FeatureSpec) string {
	if !spec.LockToDefault {
		return ""
	}
	return fmt.Sprintf(" %t", spec.Default)
}

// addFields adds the fields of the type to out: the path of each, and the kind of JSON value that it requires.
func addFields(out map[string]string, path string, of reflect.Type, depth int) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") || name == "" && f.Anonymous {
			addFields(out, path, f.Type, depth)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		fieldPath := strings.TrimPrefix(path+"."+name, ".")
		kind, inner := kindOf(f.Type)
		out[fieldPath] = kind
		if inner != nil && depth < 4 { // a limit, because types can contain themselves
			addFields(out, fieldPath, inner, depth+1)
		}
	}
}

// kindOf returns the kind of JSON value that a type requires, and the type of its fields, if any.
func kindOf(of reflect.Type) (kind string, fields reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[metav1.Duration]() || of == reflect.TypeFor[time.Duration]() {
		return "duration", nil
	}
	switch of.Kind() {
	case reflect.String:
		return "text", nil
	case reflect.Bool:
		return "truth", nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint, reflect.Uint8, reflect.Uint64:
		return "number", nil
	case reflect.Slice:
		if inner, _ := kindOf(of.Elem()); inner == "text" {
			return "texts", nil
		}
		return "list", nil
	case reflect.Map:
		if inner, _ := kindOf(of.Elem()); inner == "text" || inner == "truth" {
			return inner + "-table", nil
		}
		return "table", nil
	case reflect.Struct:
		if strings.HasPrefix(of.PkgPath(), "k8s.io/kubelet") {
			return "table", of
		}
	default:
	}
	return "any", nil
}
