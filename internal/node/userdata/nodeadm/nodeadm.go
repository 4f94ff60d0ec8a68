// Package nodeadm reads NodeConfig documents of AL2023.
//
// In: a userdata.Reader and the texts of NodeConfigs.
// Out: starts of the kubelet and problems, added to the Reader.
// Never: a value that may be a secret in a problem.
package nodeadm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

const nodeConfigVersion = "node.eks.aws/v1alpha1"

// nodeConfig holds the fields of a NodeConfig that nodeadm reads. nodeadm ignores unknown fields.
// Source: nodeadm/api of github.com/awslabs/amazon-eks-ami.
type nodeConfig struct {
	Spec struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority []byte `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
			EnableOutpost        *bool  `json:"enableOutpost"`
			ID                   string `json:"id"`
		} `json:"cluster"`
		Containerd struct {
			Config          string         `json:"config"`
			BaseRuntimeSpec map[string]any `json:"baseRuntimeSpec"`
		} `json:"containerd"`
		Instance map[string]any `json:"instance"`
		Kubelet  struct {
			Config            map[string]any `json:"config"`
			Flags             []string       `json:"flags"`
			MaxPodsExpression string         `json:"maxPodsExpression"`
		} `json:"kubelet"`
		FeatureGates map[string]bool `json:"featureGates"`
	} `json:"spec"`
}

// nodeConfigFields maps the path of a table to the fields that nodeadm knows in it.
var nodeConfigFields = map[string]string{
	"":                           "apiVersion kind metadata spec status",
	"spec":                       "cluster containerd instance kubelet featureGates proxy",
	"spec.cluster":               "name apiServerEndpoint certificateAuthority cidr enableOutpost id",
	"spec.kubelet":               "config flags maxPodsExpression",
	"spec.instance":              "localStorage storage environment network",
	"spec.instance.localStorage": "strategy mountPath disabledMounts",
	"spec.containerd":            "config baseRuntimeSpec",
}

// configPart is one NodeConfig of the user data.
type configPart struct {
	doc       map[string]any
	positions map[string]userdata.Position // positions of fields, by path: "spec.kubelet.config.maxPods"
	at        userdata.Position
}

// Read reads the NodeConfigs that nodeadm merges, in their order. It adds no start if one of them cannot be read.
func Read(r *userdata.Reader, texts []userdata.Text) {
	var all []configPart
	for _, t := range texts {
		part, ok := readConfig(r, t)
		if !ok {
			return
		}
		all = append(all, part)
	}
	if len(all) == 0 {
		return
	}
	reportOverridden(r, all)
	merged, positions := map[string]any{}, map[string]userdata.Position{}
	for i, part := range all {
		for path, position := range part.positions {
			// Flags of all NodeConfigs take effect, so each keeps its position.
			if path == "spec.kubelet.flags" || strings.HasPrefix(path, "spec.kubelet.flags.") {
				path = fmt.Sprintf("%d:%s", i, path)
			}
			positions[path] = position
		}
		merge(merged, part.doc)
	}
	var config nodeConfig
	data, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil { // readConfig accepted each NodeConfig, so two NodeConfigs have different types for one field
		r.Report(userdata.NodeConfigBroken, userdata.Certain, userdata.NeverJoins, all[len(all)-1].at,
			"the NodeConfigs cannot be merged: a field has different types in two of them")
		return
	}
	addStart(r, config, all, positions)
}

// addStart adds the start of the kubelet by nodeadm, unless spec.cluster is incomplete or its CIDR is invalid.
func addStart(r *userdata.Reader, config nodeConfig, all []configPart, positions map[string]userdata.Position) {
	cluster := config.Spec.Cluster
	s := userdata.Start{
		By:                  userdata.ByNodeadm,
		At:                  all[len(all)-1].at,
		IsUnconditional:     true,
		Config:              config.Spec.Kubelet.Config,
		Positions:           map[string]userdata.Position{},
		NodeConfigPositions: positions,
		Environment:         kubelet.EnvironmentOf(config.Spec.Instance, positions),
		Cluster:             userdata.Value{Text: cluster.Name, At: positions["spec.cluster.name"]},
		Endpoint:            userdata.Value{Text: cluster.APIServerEndpoint, At: positions["spec.cluster.apiServerEndpoint"]},
		CA:                  userdata.Value{Text: string(cluster.CertificateAuthority), At: positions["spec.cluster.certificateAuthority"]},
	}
	for name := range s.Config {
		s.Positions[name] = positions["spec.kubelet.config."+name]
	}
	for i, part := range all {
		flags, _ := userdata.ValueAt(part.doc, "spec", "kubelet", "flags").([]any)
		for j, f := range flags {
			line, _ := f.(string)
			position := positions[fmt.Sprintf("%d:spec.kubelet.flags.%d", i, j)]
			for _, w := range userdata.Words(line) {
				s.Flags = append(s.Flags, userdata.Flag{Text: w, At: position})
			}
		}
	}
	for _, field := range []struct {
		name, value string
	}{{"name", cluster.Name}, {"apiServerEndpoint", cluster.APIServerEndpoint},
		{"certificateAuthority", string(cluster.CertificateAuthority)}, {"cidr", cluster.CIDR}} {
		if field.value == "" {
			r.Report(userdata.ValueMissing, userdata.Certain, userdata.NeverJoins, s.At,
				"the NodeConfig has no spec.cluster.%s, and nodeadm ends with an error", field.name).
				Suggest("write all of spec.cluster: name, apiServerEndpoint, certificateAuthority and cidr", "")
			return
		}
	}
	if _, err := netip.ParsePrefix(cluster.CIDR); err != nil {
		r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins, positions["spec.cluster.cidr"],
			"spec.cluster.cidr is not a range of addresses, and nodeadm ends with an error").
			Suggest("write the range of the cluster's services, for instance 10.100.0.0/16", "")
		return
	}
	r.Starts = append(r.Starts, s)
}

// readConfig parses one NodeConfig like nodeadm and checks it. It returns false if nodeadm cannot parse the text, or if
// only the instance knows some words of the text.
func readConfig(r *userdata.Reader, t userdata.Text) (configPart, bool) {
	part := configPart{at: t.At, positions: map[string]userdata.Position{}}
	reject := func(position userdata.Position, format string, args ...any) (configPart, bool) {
		r.Report(userdata.NodeConfigBroken, userdata.Certain, userdata.NeverJoins, position, "is not a NodeConfig: "+format, args...)
		return part, false
	}
	if t.Vague {
		r.Unevaluated = append(r.Unevaluated, "the NodeConfig at "+t.At.String()+" has words in it that only the instance knows")
		return part, false
	}
	if err := yaml.Unmarshal([]byte(t.Body), &part.doc); err != nil {
		return reject(userdata.YAMLErrorPosition(err, t.At), "it is not valid YAML%s", userdata.SafeYAMLMessage(err))
	}
	part.positions = userdata.PositionsOfYAML(t)
	version, _ := part.doc["apiVersion"].(string)
	kind, _ := part.doc["kind"].(string)
	switch {
	case kind != "NodeConfig":
		return reject(userdata.FirstKnown(part.positions["kind"], t.At), "its kind must be NodeConfig")
	case version != nodeConfigVersion:
		return reject(userdata.FirstKnown(part.positions["apiVersion"], t.At), "its apiVersion must be %s", nodeConfigVersion)
	}
	var typed nodeConfig
	data, err := json.Marshal(part.doc)
	if err == nil {
		err = json.Unmarshal(data, &typed)
	}
	if err != nil {
		path, text := shapeError(err)
		return reject(userdata.FirstKnown(part.positions[path], t.At), "%s", text)
	}
	reportUnknownFields(r, part)
	judgeNodeadmValues(r, part, typed)
	judgeNodeadmGates(r, part)
	reportMoreDocuments(r, t)
	return part, true
}

// reportMoreDocuments reports YAML documents after the first one of a part, which nodeadm does not read.
func reportMoreDocuments(r *userdata.Reader, t userdata.Text) {
	hasContent, n := false, 0 // n is the number of lines before the current line
	for line := range strings.Lines(t.Body) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "---") && hasContent:
			position := userdata.Position{Part: t.At.Part, Line: t.At.Line + n}
			r.Report(userdata.SettingUnknown, userdata.Likely, userdata.JoinsDifferently, position,
				"nodeadm reads one document of each part, and ignores what is below this line").
				Suggest("write each NodeConfig as a MIME part of its own", "")
			return
		case line != "" && line[0] != '#' && !strings.HasPrefix(line, "---"):
			hasContent = true
		}
		n++
	}
}

func reportUnknownFields(r *userdata.Reader, part configPart) {
	for _, table := range slices.Sorted(maps.Keys(nodeConfigFields)) {
		fields := part.doc
		if table != "" {
			fields, _ = userdata.ValueAt(part.doc, strings.Split(table, ".")...).(map[string]any)
		}
		known := strings.Fields(nodeConfigFields[table])
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if slices.Contains(known, name) {
				continue
			}
			path := strings.TrimPrefix(table+"."+name, ".")
			p := r.Report(userdata.SettingUnknown, userdata.Certain, userdata.JoinsDifferently,
				userdata.FirstKnown(part.positions[path], part.at), "nodeadm does not know this field%s%s of a NodeConfig, and ignores it",
				userdata.InParentheses(name), userdata.InTable(table))
			if near := userdata.Nearest(name, known); near != "" {
				p.Suggest("write", near)
			} else {
				p.Suggest("remove it", "")
			}
		}
	}
}

// diskStrategies are the strategies of local storage. nodeadm ignores their case.
var diskStrategies = []string{"RAID0", "RAID10", "Mount", "None"}

// judgeNodeadmValues reports values with which nodeadm fails before the kubelet starts.
func judgeNodeadmValues(r *userdata.Reader, part configPart, typed nodeConfig) {
	strategy := userdata.ValueAt(part.doc, "spec", "instance", "localStorage", "strategy")
	name, isText := strategy.(string)
	isUnknown := name != "" && !slices.ContainsFunc(diskStrategies, func(s string) bool { return strings.EqualFold(s, name) })
	if strategy != nil && (isUnknown || !isText) {
		p := r.Report(userdata.NodeConfigBroken, userdata.Likely, userdata.NeverJoins,
			userdata.FirstKnown(part.positions["spec.instance.localStorage.strategy"], part.at),
			"spec.instance.localStorage.strategy must be one of RAID0, RAID10, Mount, None, and nodeadm fails on instances with local disks")
		p.Suggest("choose one of them", "")
	}
	if _, ok := userdata.DecodeTOML(typed.Spec.Containerd.Config); !ok {
		r.Report(userdata.NodeConfigBroken, userdata.Certain, userdata.NeverJoins,
			userdata.FirstKnown(part.positions["spec.containerd.config"], part.at),
			"spec.containerd.config is not valid TOML, and nodeadm fails before it starts the kubelet").Suggest("correct it", "")
	}
}

// judgeNodeadmGates reports feature gates that nodeadm ignores, and the node names that InstanceIdNodeName results in.
func judgeNodeadmGates(r *userdata.Reader, part configPart) {
	gates, _ := userdata.ValueAt(part.doc, "spec", "featureGates").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		position := userdata.FirstKnown(part.positions["spec.featureGates."+name], part.at)
		_, ofKubelet := kubelet.KubeletGates[name]
		switch {
		case slices.Contains(kubelet.NodeadmGates, name):
		case ofKubelet:
			r.Report(userdata.SettingUnknown, userdata.Certain, userdata.JoinsDifferently, position,
				"%s is a feature gate of the kubelet, and nodeadm ignores it in spec.featureGates", name).
				Suggest("write it into spec.kubelet.config.featureGates", "")
		default:
			p := r.Report(userdata.SettingUnknown, userdata.Likely, userdata.JoinsDifferently, position,
				"nodeadm knows no such feature gate%s, and ignores it", userdata.InParentheses(name))
			p.Suggest("remove it", "")
			if near := userdata.Nearest(name, kubelet.NodeadmGates); near != "" {
				p.Suggest("write", near)
			}
		}
	}
	if on, _ := gates["InstanceIdNodeName"].(bool); on {
		r.ReportNamedByInstance(userdata.FirstKnown(part.positions["spec.featureGates.InstanceIdNodeName"], part.at),
			"InstanceIdNodeName names nodes by their instance ID")
	}
}

// merge copies the fields of source into target, key by key. Flags are appended; other lists and values are replaced.
func merge(target, source map[string]any) {
	for key, value := range source {
		switch v := value.(type) {
		case map[string]any:
			old, ok := target[key].(map[string]any)
			if !ok {
				old = map[string]any{}
				target[key] = old
			}
			merge(old, v)
			continue
		case []any:
			if old, ok := target[key].([]any); ok && key == "flags" {
				target[key] = slices.Concat(old, v)
				continue
			}
		}
		target[key] = value
	}
}

// shapeError returns the path of a field with a wrong type, and the text of the problem. The text does not quote the
// value.
func shapeError(err error) (path, text string) {
	var wrong *json.UnmarshalTypeError
	if !userdata.AsType(err, &wrong) {
		return "", "a field has a value that it cannot have"
	}
	field := wrong.Field
	for !userdata.IsQuotable(field) && field != "" { // a key that the user chose may be a secret
		field = field[:max(strings.LastIndexByte(field, '.'), 0)]
	}
	kinds := map[string]string{"string": "text", "bool": "true or false", "map": "a table", "struct": "a table", "slice": "a list"}
	want := kinds[wrong.Type.Kind().String()]
	if want == "" {
		want = "of another kind"
	}
	name := field
	if field != wrong.Field {
		name = "an entry of " + field
	}
	return wrong.Field, fmt.Sprintf("%s must be %s, but is %s", name, want, map[string]string{
		"string": "text", "number": "a number", "bool": "true or false", "object": "a table", "array": "a list",
	}[strings.Fields(wrong.Value)[0]]) // Value is a type, or "number" and the number
}
