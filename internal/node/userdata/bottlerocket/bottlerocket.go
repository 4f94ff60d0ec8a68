// Package bottlerocket reads user data of Bottlerocket: settings in TOML, checked against the settings model.
//
// In: a userdata.Reader and a text.
// Out: starts of the kubelet and problems, added to the Reader.
// Never: a value that may be a secret in a problem.
package bottlerocket

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// Read reads settings. Positions refer to the user's own text, r.In.Own, if that is known: Joiner generates the text t
// of the instance from the user's text.
func Read(r *userdata.Reader, t userdata.Text) {
	r.Out.Form = userdata.FormBottlerocket
	if reportOtherForm(r, t) {
		return
	}
	settings, ok := readTOML(r, t)
	if !ok {
		return
	}
	own := t
	if r.In.Own != "" && r.In.Own != t.Body {
		own = userdata.Text{Body: r.In.Own, At: userdata.Position{Line: 1, Column: 1}}
	}
	positions := userdata.PositionsOfTOML(own)
	reportOtherTables(r, own, positions)
	judgeSettings(r, settings, positions)
	reportOverridden(r, settings, positions)
	kubernetes, _ := settings["kubernetes"].(map[string]any)
	s := userdata.Start{By: userdata.BySetting, IsUnconditional: true, Config: map[string]any{}, Positions: map[string]userdata.Position{}}
	valueOf := func(key string) userdata.Value {
		text, _ := kubernetes[key].(string)
		return userdata.Value{Text: text, At: positions["settings.kubernetes."+key]}
	}
	s.Cluster, s.Endpoint, s.CA, s.IP = valueOf("cluster-name"), valueOf("api-server"), valueOf("cluster-certificate"), valueOf("node-ip")
	for _, key := range slices.Sorted(maps.Keys(kubernetes)) {
		addSetting(&s, key, kubernetes[key], positions)
	}
	if kubernetes["hostname-override-source"] == "instance-id" {
		r.ReportNamedByInstance(positions["settings.kubernetes.hostname-override-source"],
			"hostname-override-source names nodes by their instance ID")
	}
	if checkRequired(r, kubernetes) {
		r.Starts = append(r.Starts, s)
	}
}

// reportOtherForm reports text in a form that Bottlerocket does not read, and returns true for such a text.
func reportOtherForm(r *userdata.Reader, t userdata.Text) bool {
	form := userdata.FormOf(t.Body)
	switch form {
	case userdata.FormMIME, userdata.FormScript, userdata.FormNodeConfig, userdata.FormCloudConfig, userdata.FormPowerShell:
	default:
		return false
	}
	r.Out.Form = form
	r.Report(userdata.OtherFamily, userdata.Certain, userdata.NeverJoins, t.At,
		"it is %s, but Bottlerocket runs no scripts: it reads settings in TOML", form).
		Suggest("write it as [settings.kubernetes], or choose another AMI family", "")
	return true
}

// readTOML returns the table [settings]. It reports text that is not TOML, or has other content but no such table, and
// then returns false.
func readTOML(r *userdata.Reader, t userdata.Text) (map[string]any, bool) {
	var doc map[string]any
	_, err := userdata.CatchPanic(func() (any, error) { return nil, toml.Unmarshal([]byte(t.Body), &doc) })
	if err != nil {
		position := t.At
		var decodeErr *toml.DecodeError
		if userdata.AsType(err, &decodeErr) {
			line, column := decodeErr.Position()
			position = userdata.Position{Part: t.At.Part, Line: line, Column: column}
		}
		r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins, position,
			"it is not valid TOML from here on: Bottlerocket would apply none of the settings")
		return nil, false
	}
	settings, ok := doc["settings"].(map[string]any)
	if !ok && len(doc) > 0 {
		r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins, t.At,
			"it has no table [settings]: Bottlerocket would apply none of it").
			Suggest("begin it with", "[settings.kubernetes]")
		return nil, false
	}
	return settings, true
}

// reportOtherTables reports the user's tables outside of [settings], which Bottlerocket does not read.
func reportOtherTables(r *userdata.Reader, own userdata.Text, positions map[string]userdata.Position) {
	doc, _ := userdata.DecodeTOML(own.Body)
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if name == "settings" {
			continue
		}
		p := r.Report(userdata.SettingUnknown, userdata.Likely, userdata.JoinsDifferently, positions[name],
			"Bottlerocket reads [settings] only, and ignores the table%s beside it", userdata.InParentheses(name))
		p.Suggest("write it below [settings]", "")
		if near := userdata.Nearest(name, []string{"settings"}); near != "" {
			p.Suggest("write", near)
		}
	}
}

// addSetting records the kubelet setting that a Bottlerocket setting results in. Labels and taints become flags.
func addSetting(s *userdata.Start, key string, value any, positions map[string]userdata.Position) {
	position := positions["settings.kubernetes."+key]
	field, known := settingFields[key]
	switch {
	case key == "cluster-dns-ip":
		field, value = "clusterDNS", userdata.List(value)
	case key == "node-labels":
		if labels := settingLabels(value); labels != "" {
			s.Flags = append(s.Flags, userdata.Flag{Text: "--node-labels=" + labels, At: position})
			s.Labels = map[string]userdata.Position{}
			table, _ := value.(map[string]any)
			for label := range table {
				s.Labels[label] = positions["settings.kubernetes.node-labels."+label]
			}
		}
		return
	case key == "node-taints":
		if taints := settingTaints(value); taints != "" {
			s.Flags = append(s.Flags, userdata.Flag{Text: "--register-with-taints=" + taints, At: position})
		}
		return
	case slices.Contains(numbersAsText, key):
		n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
		if err != nil || n < 0 || n > 100 {
			return // no percentage: judgeSettings has reported it
		}
		value = n
	case !known:
		return
	}
	s.Config[field], s.Positions[field] = value, position
}

// checkRequired returns false, and reports a problem, if the kubelet cannot join: standalone-mode is true, or a
// setting that identifies the cluster is missing. Missing settings are reported only for the family Custom, because
// Joiner writes them for the family Bottlerocket.
func checkRequired(r *userdata.Reader, kubernetes map[string]any) bool {
	if standalone, _ := kubernetes["standalone-mode"].(bool); standalone {
		r.Report(userdata.NothingJoins, userdata.Certain, userdata.NeverJoins, userdata.Position{},
			"settings.kubernetes.standalone-mode is true: the kubelet runs by itself, without a cluster").
			Suggest("remove it", "")
		return false
	}
	for _, key := range []string{"api-server", "cluster-certificate", "cluster-name"} {
		if _, ok := kubernetes[key]; !ok && r.In.Family == userdata.FamilyCustom {
			r.Report(userdata.ValueMissing, userdata.Certain, userdata.NeverJoins, userdata.Position{},
				"settings.kubernetes.%s is missing, and Bottlerocket does not find the cluster without it", key).
				Suggest("write api-server, cluster-certificate and cluster-name", "")
			return false
		}
	}
	return true
}

// settingLabels formats key = "value" as the value of the kubelet's flag --node-labels.
func settingLabels(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		out = append(out, fmt.Sprintf("%s=%v", key, table[key]))
	}
	return strings.Join(out, ",")
}

// settingTaints formats key = ["value:effect", …] as the value of the kubelet's flag --register-with-taints.
func settingTaints(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		for _, entry := range userdata.List(table[key]) {
			valueAndEffect := fmt.Sprint(entry)
			if strings.HasPrefix(valueAndEffect, ":") {
				out = append(out, key+valueAndEffect)
				continue
			}
			out = append(out, key+"="+valueAndEffect)
		}
	}
	return strings.Join(out, ",")
}
