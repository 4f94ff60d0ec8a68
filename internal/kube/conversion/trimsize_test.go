package conversion

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// writable returns, for each cached kind that users create in namespaces, a function that makes an object. The function
// also returns pointers to the parts of the object that the users may write.
func writable() map[string]func() (client.Object, []any) {
	return map[string]func() (client.Object, []any){
		"Pod": func() (client.Object, []any) {
			o := kubetest.SmallPod()
			return o, []any{&o.ObjectMeta, &o.Spec}
		},
		"DaemonSet": func() (client.Object, []any) {
			o := &appsv1.DaemonSet{}
			return o, []any{&o.ObjectMeta, &o.Spec, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec}
		},
		"StatefulSet": func() (client.Object, []any) {
			o := &appsv1.StatefulSet{}
			return o, []any{&o.ObjectMeta, &o.Spec, &o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec}
		},
		"ReplicaSet": func() (client.Object, []any) {
			o := &appsv1.ReplicaSet{}
			return o, []any{&o.ObjectMeta, &o.Spec, &o.Spec.Template.Spec}
		},
		"ReplicationController": func() (client.Object, []any) {
			o := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}}
			return o, []any{&o.ObjectMeta, &o.Spec, &o.Spec.Template.Spec}
		},
		"Service": func() (client.Object, []any) { o := &corev1.Service{}; return o, []any{&o.ObjectMeta, &o.Spec} },
		"PersistentVolumeClaim": func() (client.Object, []any) {
			o := &corev1.PersistentVolumeClaim{}
			return o, []any{&o.ObjectMeta, &o.Spec}
		},
		"PodDisruptionBudget": func() (client.Object, []any) {
			o := &policyv1.PodDisruptionBudget{}
			return o, []any{&o.ObjectMeta, &o.Spec}
		},
	}
}

// TestTrimmedSize fills, one after another, every list and map that a user may write into an object. The cache may keep
// at most 100 KiB of the object: the API server accepts objects of 1.5 MiB, and users may create thousands.
func TestTrimmedSize(t *testing.T) {
	t.Parallel()
	const most = 100 << 10
	for kind, newObject := range writable() {
		for part := range len(onlyParts(newObject())) {
			visitLists(reflect.TypeOf(onlyParts(newObject())[part]).Elem(), nil, func(path []int, name string) {
				object, parts := newObject()
				fill(reflect.ValueOf(parts[part]).Elem(), path)
				before := sizeOf(object)
				if before < most/3 {
					t.Errorf("%s has only %d bytes after %s was filled, want a third of the limit or more",
						kind, before, name)
				}
				if _, err := Trim(object); err != nil {
					t.Fatal(err)
				}
				if after := sizeOf(object); after > most {
					t.Errorf("%s keeps %d KiB of %d KiB in %s, want at most 100 KiB", kind, after>>10, before>>10, name)
				}
			})
		}
	}
}

// onlyParts drops the first result of a function in writable.
func onlyParts(_ client.Object, parts []any) []any { return parts }

// visitLists calls visit for each list and map below a type, with its path as field indexes. path is the path of the
// type. It skips times, quantities and pod templates (writable returns these as parts), and pointers below four levels.
func visitLists(t reflect.Type, path []int, visit func(path []int, name string)) {
	for i := range t.NumField() {
		f := t.Field(i)
		fieldPath := append(append([]int{}, path...), i)
		switch kind := f.Type.Kind(); {
		case f.Type == reflect.TypeFor[metav1.Time](), f.Type == reflect.TypeFor[*metav1.Time](),
			f.Type == reflect.TypeFor[corev1.PodTemplateSpec](), f.Type == reflect.TypeFor[*corev1.PodTemplateSpec]():
		case strings.Contains(f.Type.String(), "Quantity") && kind != reflect.Map:
		case kind == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8, kind == reflect.Map:
			visit(fieldPath, t.Name()+"."+f.Name)
		case kind == reflect.Struct:
			visitLists(f.Type, fieldPath, visit)
		case kind == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && len(path) < 4:
			visitLists(f.Type.Elem(), fieldPath, visit)
		}
	}
}

// fill puts 20,000 different elements into the list or map at the path.
func fill(v reflect.Value, path []int) {
	for _, i := range path {
		if v = v.Field(i); v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
	}
	const many = 20_000
	switch v.Kind() {
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), many, many)
		for i := range many {
			setText(out.Index(i), fmt.Sprintf("example.com/name-%05d", i))
		}
		v.Set(out)
	case reflect.Map:
		out := reflect.MakeMap(v.Type())
		for i := range many {
			element := reflect.New(v.Type().Elem()).Elem()
			setText(element, "value")
			out.SetMapIndex(reflect.ValueOf(fmt.Sprintf("example.com/name-%05d", i)).Convert(v.Type().Key()), element)
		}
		v.Set(out)
	default:
	}
}

// setText sets a text, or all texts directly in a struct, to the given text.
func setText(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setText(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String && f.CanSet() {
				setText(f, text)
			}
		}
		if c, ok := v.Addr().Interface().(*corev1.Volume); ok {
			c.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: text}
		}
	default:
	}
}

func sizeOf(o client.Object) int { return o.(interface{ Size() int }).Size() }
