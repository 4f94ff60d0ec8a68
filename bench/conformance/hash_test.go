package conformance

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	upstreamaws "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "sigs.k8s.io/karpenter/pkg/apis/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

const authority = "LS0tLS1CRUdJTg==" // any certificate authority, in base64

// TestHashesOfManifests: the drift hashes of typical NodePools and EC2NodeClasses equal Karpenter's, so nodes do not
// drift when Joiner takes over from Karpenter or Karpenter from Joiner.
func TestHashesOfManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 22 {
		t.Fatalf("testdata has %d manifests (%v), want at least 22", len(files), err)
	}
	count := map[string]int{}
	for _, file := range files {
		for _, object := range objectsOf(t, file, func(string) string { return "demo" }) {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			switch kind, _ := object["kind"].(string); kind {
			case "NodePool":
				count[kind]++
				checkPoolHash(t, file, text)
			case "EC2NodeClass":
				count[kind]++
				checkClassHash(t, file, text)
			}
		}
	}
	if count["NodePool"] < 20 || count["EC2NodeClass"] < 15 {
		t.Errorf("compared only %v, want at least 20 NodePools and 15 EC2NodeClasses", count)
	}
}

// TestHashesOfRandomObjects: the drift hashes of objects with random content equal Karpenter's.
func TestHashesOfRandomObjects(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(7, 11))
	for n := range 1500 {
		var pool karpv1.NodePool
		fillRandom(reflect.ValueOf(&pool.Spec).Elem(), dice)
		checkPoolHash(t, strconv.Itoa(n), marshal(t, pool))
		var class awsv1.EC2NodeClass
		fillRandom(reflect.ValueOf(&class.Spec).Elem(), dice)
		for i := range class.Spec.AMISelectorTerms { // Karpenter fails on an invalid alias
			aliases := []string{"", "al2023@latest", "bottlerocket@v1.20.0", "windows2022@latest"}
			class.Spec.AMISelectorTerms[i].Alias = aliases[dice.IntN(len(aliases))]
		}
		checkClassHash(t, strconv.Itoa(n), marshal(t, class))
	}
}

// TestHashVersions: the hash versions equal Karpenter's.
func TestHashVersions(t *testing.T) {
	t.Parallel()
	if _, got, _ := conversion.PoolHash(&karpv1.NodePool{}); got != upstream.NodePoolHashVersion {
		t.Errorf("a NodePool's hash is of version %s, want %s", got, upstream.NodePoolHashVersion)
	}
	if _, got, _ := conversion.ClassHash(&awsv1.EC2NodeClass{}, ""); got != upstreamaws.EC2NodeClassHashVersion {
		t.Errorf("an EC2NodeClass's hash is of version %s, want %s", got, upstreamaws.EC2NodeClassHashVersion)
	}
}

func checkPoolHash(t *testing.T, name string, text []byte) {
	t.Helper()
	var ours karpv1.NodePool
	var theirs upstream.NodePool
	unmarshal(t, text, &ours)
	unmarshal(t, text, &theirs)
	got, _, err := conversion.PoolHash(&ours)
	if want := theirs.Hash(); got != want || err != nil {
		t.Errorf("%s: the NodePool's hash is %s (%v), want %s:\n%s", name, got, err, want, text)
	}
}

func checkClassHash(t *testing.T, name string, text []byte) {
	t.Helper()
	var ours awsv1.EC2NodeClass
	var theirs upstreamaws.EC2NodeClass
	unmarshal(t, text, &ours)
	unmarshal(t, text, &theirs)
	for _, ca := range []string{"", authority} {
		got, _, err := conversion.ClassHash(&ours, ca)
		if want := theirs.Hash(&ca); got != want || err != nil {
			t.Errorf("%s: the EC2NodeClass's hash is %s (%v), want %s:\n%s", name, got, err, want, text)
		}
	}
}

func marshal(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func unmarshal(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
}

// fillRandom sets a value to a random one. In a struct, it skips about a third of the fields.
func fillRandom(v reflect.Value, dice *rand.Rand) {
	switch value := v.Addr().Interface().(type) {
	case *awsv1.KubeletConfiguration:
		fillKubelet(value, dice)
		return
	}
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse(strconv.Itoa(1+dice.IntN(99)) + []string{"Gi", "G", "Ti", "T"}[dice.IntN(4)])))
		return
	case metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(1+dice.IntN(1000)) * time.Second}))
		return
	case karpv1.Duration:
		v.Set(reflect.ValueOf(karpv1.Duration{Duration: time.Duration(1+dice.IntN(1000)) * time.Second}))
		return
	case karpv1.NillableDuration:
		v.Set(reflect.ValueOf(karpv1.After(time.Duration(dice.IntN(1000)) * time.Minute)))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(int64(dice.IntN(2_000_000_000)), 0)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && dice.IntN(3) > 0 {
				fillRandom(v.Field(i), dice)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillRandom(v.Elem(), dice)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), dice.IntN(3), 3))
		for i := range v.Len() {
			fillRandom(v.Index(i), dice)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range dice.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fillRandom(key, dice)
			fillRandom(value, dice)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(strings.Repeat("x", dice.IntN(3)) + strconv.Itoa(dice.IntN(50)))
	case reflect.Bool:
		v.SetBool(dice.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(dice.IntN(100)))
	default:
	}
}

// fillKubelet sets the fields that Karpenter reads to random values, and the grace periods to valid durations.
func fillKubelet(kubelet *awsv1.KubeletConfiguration, dice *rand.Rand) {
	type plain awsv1.KubeletConfiguration // a type for which fillRandom does not call fillKubelet again
	fields := plain(*kubelet)
	fillRandom(reflect.ValueOf(&fields).Elem(), dice)
	*kubelet = awsv1.KubeletConfiguration(fields)
	kubelet.More = nil // settings that Karpenter does not know
	for name := range kubelet.EvictionSoftGracePeriod {
		kubelet.EvictionSoftGracePeriod[name] = (time.Duration(dice.IntN(200)) * time.Second).String()
	}
}
