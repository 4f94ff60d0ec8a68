package api

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// shape has fields of all types that requests use.
type shape struct {
	Name    string
	Count   *int64
	Share   float64
	On      *bool
	At      time.Time
	List    []string `aws:"Item"`
	Members []string
	Map     map[string]string `aws:"Attribute"`
	Nested  struct {
		Deep []Filter `aws:"Filter"`
	}
	Paged
}

// TestQuery decodes parameters of all types, and finds the parameter that no field reads.
func TestQuery(t *testing.T) {
	t.Parallel()
	form, err := url.ParseQuery("Name=a&Count=3&Share=0.5&On=false&At=2026-01-02T03:04:05Z&Item.10=c&Item.2=b&Item.1=a" +
		"&Members.member.1=x&Members.member.2=y&Attribute.1.Name=k&Attribute.1.Value=v" +
		"&Nested.Filter.1.Name=f&Nested.Filter.1.Value.1=v1&Nested.Filter.1.Value.2=v2&NextToken=n&Odd.1.Thing=1")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := ParseQuery(form)
	if err != nil {
		t.Fatal(err)
	}
	var got shape
	c := &Codec{}
	if err := c.Decode(tree, &got); err != nil {
		t.Fatal(err)
	}
	three, off := int64(3), false
	want := shape{
		Name: "a", Count: &three, Share: 0.5, On: &off, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		List: []string{"a", "b", "c"}, Members: []string{"x", "y"}, Map: map[string]string{"k": "v"}, Paged: Paged{NextToken: "n"},
	}
	want.Nested.Deep = []Filter{{Name: "f", Values: []string{"v1", "v2"}}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(shape{}, Paged{})); d != "" {
		t.Errorf("decoded (-want +got):\n%s", d)
	}
	if name := tree.Unused(""); name != "Odd" {
		t.Errorf("unused parameter is %q, want Odd", name)
	}
}

// TestQueryRefused: invalid values and too deeply nested parameters are errors.
func TestQueryRefused(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"number":  "Count=many",
		"boolean": "On=perhaps",
		"time":    "At=yesterday",
		"depth":   strings.Repeat("A.", 20) + "B=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			form, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := ParseQuery(form)
			if err == nil {
				err = (&Codec{}).Decode(tree, &shape{})
			}
			var awsErr *failure.Error
			if !errors.As(err, &awsErr) {
				t.Errorf("got %v, want a failure.Error", err)
			}
		})
	}
}

// FuzzQuery decodes arbitrary queries. Decoding may fail, but must not panic, and must not create more elements than
// the query has parameters.
func FuzzQuery(f *testing.F) {
	f.Add("Name=a&Item.1=b&Nested.Filter.1.Name=c")
	f.Add("Item.99999999999999999999=x&Item.-1=y&Item.01=z&Item.1.2.3=w")
	f.Add("Attribute.1=x&Attribute.1.Name=y&Members.member.=z")
	f.Add("....=&=&Item=&Nested=1")
	f.Fuzz(func(t *testing.T, query string) {
		form, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		tree, err := ParseQuery(form)
		if err != nil {
			return
		}
		c := &Codec{}
		var got shape
		if c.Decode(tree, &got) != nil {
			return
		}
		if len(got.List)+len(got.Members)+len(got.Map)+len(got.Nested.Deep) > len(form) {
			t.Errorf("decoding created more elements than the %d parameters of the query", len(form))
		}
		tree.Unused("")
		(&Encoder{Codec: c}).Fields(reflect.ValueOf(got))
	})
}

// TestXML encodes a value in both dialects of XML: EC2's, and that of the other query services. The nil and empty
// fields None, Missing, Empty and Optional are omitted.
func TestXML(t *testing.T) {
	t.Parallel()
	type inner struct {
		Id   string
		Tags []world.Tag `aws:"Tag,tagSet"`
	}
	type answer struct { // Named has all three parts of a tag
		Things   []inner `aws:"ThingSet"`
		None     []inner
		Count    int64
		Missing  *int64
		Empty    string
		Kept     string `aws:",,always"`
		At       time.Time
		Flat     []string          `aws:",,flat"`
		Pairs    map[string]string `aws:"Pair"`
		Optional *inner
		Named    []string `aws:"Group,groupSet,groupId"`
	}
	v := answer{
		Things: []inner{{Id: "<1>", Tags: []world.Tag{{Key: "k"}}}}, None: nil, At: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
		Flat: []string{"a", "b"}, Pairs: map[string]string{"y": "2", "x": "1"}, Named: []string{"g"},
	}
	for name, test := range map[string]struct {
		dialect Dialect
		want    string
	}{
		"ec2": {Dialect{LowerFirst: true, Item: Ec2Item}, "<thingSet><item><id>&lt;1&gt;</id><tagSet><item><key>k</key><value></value></item></tagSet></item></thingSet>" +
			"<count>0</count><kept></kept><at>2026-01-02T03:04:05.006Z</at><flat>a</flat><flat>b</flat>" +
			"<pair><Name>x</Name><Value>1</Value></pair><pair><Name>y</Name><Value>2</Value></pair><groupSet><groupId>g</groupId></groupSet>"},
		"query": {Dialect{Item: QueryItem}, "<ThingSet><member><Id>&lt;1&gt;</Id><Tag><member><Key>k</Key><Value></Value></member></Tag></member></ThingSet>" +
			"<Count>0</Count><Kept></Kept><At>2026-01-02T03:04:05.006Z</At><Flat>a</Flat><Flat>b</Flat>" +
			"<Pair><Name>x</Name><Value>1</Value></Pair><Pair><Name>y</Name><Value>2</Value></Pair><Group><groupId>g</groupId></Group>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &Encoder{Codec: &Codec{}, Dialect: test.dialect}
			e.Fields(reflect.ValueOf(v))
			if d := cmp.Diff(test.want, e.Out.String()); d != "" {
				t.Errorf("XML (-want +got):\n%s", d)
			}
		})
	}
}

// TestMatchesWildcards matches patterns of filters, and checks that a pattern of many stars takes at most a second.
func TestMatchesWildcards(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"*", "", true}, {"*", "x", true}, {"a*c", "abbc", true}, {"a*c", "abb", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {`a\*`, "a*", true}, {`a\*`, "ab", false}, {"*b*", "abc", true}, {"a*", "ab*", true},
	} {
		if got := matchesWildcards(test.pattern, test.text); got != test.want {
			t.Errorf("%q matches %q: %v, want %v", test.pattern, test.text, got, test.want)
		}
	}
	began := time.Now()
	if matchesWildcards(strings.Repeat("*a", 50)+"b", strings.Repeat("a", 5000)) {
		t.Error("a pattern that ends in b matches a text without b")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a pattern of many stars took %s, want at most a second", took)
	}
}
