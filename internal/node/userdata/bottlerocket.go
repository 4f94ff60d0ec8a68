package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// bottlerocket reads settings. Places are those of what the user wrote, if it is
// at hand: what the instance gets was written anew.
func (r *reader) bottlerocket(t text) {
	r.out.Form = FormBottlerocket
	if r.otherForm(t) {
		return
	}
	settings, ok := r.readTOML(t)
	if !ok {
		return
	}
	own := t
	if r.in.Own != "" && r.in.Own != t.body {
		own = text{body: r.in.Own, at: Spot{Line: 1, Column: 1}}
	}
	spots := spotsOfTOML(own)
	r.besideSettings(own, spots)
	r.judgeSettings(settings, spots)
	r.overriddenSettings(settings, spots)
	kubernetes, _ := settings["kubernetes"].(map[string]any)
	s := start{by: bySetting, sure: true, config: map[string]any{}, spots: map[string]Spot{}}
	prose := func(key string) Value {
		word, _ := kubernetes[key].(string)
		return Value{Text: word, At: spots["settings.kubernetes."+key]}
	}
	s.cluster, s.endpoint, s.ca, s.ip = prose("cluster-name"), prose("api-server"), prose("cluster-certificate"), prose("node-ip")
	for _, key := range slices.Sorted(maps.Keys(kubernetes)) {
		r.addSetting(&s, key, kubernetes[key], spots)
	}
	if kubernetes["hostname-override-source"] == "instance-id" {
		r.namedByInstance(spots["settings.kubernetes.hostname-override-source"], "hostname-override-source names nodes by their instance ID")
	}
	if r.neededSettings(kubernetes) {
		r.starts = append(r.starts, s)
	}
}

// otherForm says that the text is written for another image.
func (r *reader) otherForm(t text) bool {
	form := formOf(t.body)
	switch form {
	case FormMIME, FormScript, FormNodeConfig, FormCloudConfig, FormPowerShell:
	default:
		return false
	}
	r.out.Form = form
	r.problem(OtherFamily, Certain, NeverJoins, t.at, "it is %s, and Bottlerocket runs nothing: it reads settings in TOML", form).
		with("write it as [settings.kubernetes], or choose another AMI family", "")
	return true
}

func (r *reader) readTOML(t text) (map[string]any, bool) {
	var doc map[string]any
	_, err := guarded(func() (any, error) { return nil, toml.Unmarshal([]byte(t.body), &doc) })
	if err != nil {
		spot := t.at
		var broken *toml.DecodeError
		if asType(err, &broken) {
			line, column := broken.Position()
			spot = Spot{Part: t.at.Part, Line: line, Column: column}
		}
		r.problem(SettingInvalid, Certain, NeverJoins, spot, "it is no TOML from here on: Bottlerocket would take none of the settings")
		return nil, false
	}
	settings, ok := doc["settings"].(map[string]any)
	if !ok && len(doc) > 0 {
		r.problem(SettingInvalid, Certain, NeverJoins, t.at, "it has no table [settings]: Bottlerocket would take none of it").
			with("begin it with", "[settings.kubernetes]")
		return nil, false
	}
	return settings, true
}

// besideSettings reports tables of the user's beside [settings], which Bottlerocket does not read.
func (r *reader) besideSettings(own text, spots map[string]Spot) {
	doc, _ := decodeTOML(own.body)
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if name == "settings" {
			continue
		}
		p := r.problem(SettingUnknown, Likely, JoinsAmiss, spots[name], "Bottlerocket reads [settings] only, and ignores the table%s beside it", said(name))
		p.with("write it below [settings]", "")
		if near := nearest(name, []string{"settings"}); near != "" {
			p.with("write", near)
		}
	}
}

// decodeTOML reads a text that has no more than EC2 takes.
func decodeTOML(body string) (doc map[string]any, ok bool) {
	_, err := guarded(func() (any, error) { return nil, toml.Unmarshal([]byte(body), &doc) })
	return doc, err == nil
}

// addSetting notes what a setting makes of the kubelet. Labels and taints become flags.
func (r *reader) addSetting(s *start, key string, value any, spots map[string]Spot) {
	spot := spots["settings.kubernetes."+key]
	field, known := settingFields[key]
	switch {
	case key == "cluster-dns-ip":
		field, value = "clusterDNS", list(value)
	case key == "node-labels":
		if labels := settingLabels(value); labels != "" {
			s.flags = append(s.flags, flag{"--node-labels=" + labels, spot})
			s.labels = map[string]Spot{}
			table, _ := value.(map[string]any)
			for one := range table {
				s.labels[one] = spots["settings.kubernetes.node-labels."+one]
			}
		}
		return
	case key == "node-taints":
		if taints := settingTaints(value); taints != "" {
			s.flags = append(s.flags, flag{"--register-with-taints=" + taints, spot})
		}
		return
	case slices.Contains(numbersAsText, key):
		n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
		if err != nil || n < 0 || n > 100 {
			return // reported already
		}
		value = n
	case !known:
		return
	}
	s.config[field], s.spots[field] = value, spot
}

// neededSettings says whether those are there without which no kubelet joins.
func (r *reader) neededSettings(kubernetes map[string]any) bool {
	if standalone, _ := kubernetes["standalone-mode"].(bool); standalone {
		r.problem(NothingJoins, Certain, NeverJoins, Spot{}, "settings.kubernetes.standalone-mode is true: the kubelet runs by itself, without a cluster").
			with("take it out", "")
		return false
	}
	for _, key := range []string{"api-server", "cluster-certificate", "cluster-name"} {
		if _, ok := kubernetes[key]; !ok && r.in.Family == familyCustom {
			r.problem(ValueMissing, Certain, NeverJoins, Spot{}, "settings.kubernetes.%s is missing, and Bottlerocket does not find the cluster without it", key).
				with("write api-server, cluster-certificate and cluster-name", "")
			return false
		}
	}
	return true
}

func list(value any) []any {
	if l, ok := value.([]any); ok {
		return l
	}
	return []any{value}
}

func settingLabels(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		out = append(out, fmt.Sprintf("%s=%v", key, table[key]))
	}
	return strings.Join(out, ",")
}

// settingTaints writes key = ["value:effect", …] as the kubelet's flag has it.
func settingTaints(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		for _, one := range list(table[key]) {
			word := fmt.Sprint(one)
			if strings.HasPrefix(word, ":") {
				out = append(out, key+word)
				continue
			}
			out = append(out, key+"="+word)
		}
	}
	return strings.Join(out, ",")
}

// spotsOfTOML returns the positions of the settings, by path.
func spotsOfTOML(t text) map[string]Spot {
	out := map[string]Spot{}
	_, _ = guarded(func() (any, error) {
		p := unstable.Parser{}
		p.Reset([]byte(t.body))
		table := ""
		for p.NextExpression() && len(out) < 2000 {
			e := p.Expression()
			switch e.Kind {
			case unstable.Table, unstable.ArrayTable:
				table = addKeys(&p, e.Key(), "", t.at, out)
			case unstable.KeyValue:
				addValue(&p, e, table, t.at, out)
			}
		}
		return nil, p.Error()
	})
	return out
}

// addValue notes where a key stands, and those of a table behind it.
func addValue(p *unstable.Parser, e *unstable.Node, table string, at Spot, out map[string]Spot) {
	path := addKeys(p, e.Key(), table, at, out)
	if value := e.Value(); value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			if child := it.Node(); child.Kind == unstable.KeyValue {
				addValue(p, child, path, at, out)
			}
		}
	}
}

// addKeys notes where the words of a key stand, and returns its whole path.
func addKeys(p *unstable.Parser, it unstable.Iterator, path string, at Spot, out map[string]Spot) string {
	for it.Next() {
		n := it.Node()
		path = strings.TrimPrefix(path+"."+string(n.Data), ".")
		if _, there := out[path]; !there {
			start := p.Shape(n.Raw).Start
			out[path] = Spot{Part: at.Part, Line: start.Line, Column: start.Column}
		}
	}
	return path
}
