// Package userdata holds what the readers of all formats of user data share: the Input, the resulting Reading, and its
// Problems. Package userdata/reading chooses the reader and returns the Reading.
//
// In: the AMI family, the known facts about the image and the cluster, and user data in any of its forms.
// Out: a Reading: how the kubelet is started, the position of each setting, and problems. A Reader collects these.
// Never: a secret of the user data in a problem.
package userdata

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Argument is one flag of the kubelet with its value, parsed from one or two words of the command line (type Flag).
type Argument struct {
	Name, Value string   // name without dashes, and value
	At          Position // position of the flag
	HasValue    bool     // whether the flag has a value, which may be empty
}

// The content types that an instance processes.
const (
	TypeScript      = "text/x-shellscript"
	TypeBoothook    = "text/cloud-boothook"
	TypeCloudConfig = "text/cloud-config"
	TypeNodeConfig  = "application/node.eks.aws"
	TypePlain       = "text/plain"
)

// Part is one piece of user data.
type Part struct {
	Kind string // content type, without parameters
	Text Text   // content of the part
}

// Written is a text that user data writes or appends to a file.
type Written struct {
	Path string // path of the file on the instance
	Text Text   // the written text
}

// Input is the user data to read, with the known facts about the image and the cluster. Only Family is required. Checks
// that depend on unknown facts are skipped.
type Input struct {
	Family string // family of the EC2NodeClass, one of catalog's AMI families
	Image  string // name of the image, which may reveal that the image is of another family
	Arch   string // architecture of the image: "amd64" or "arm64"

	Cluster  string // name of the cluster that the node is to join
	Endpoint string // URL of the cluster's API server, "https://…"
	CA       string // the cluster's certificate authority, as base64 of PEM
	Version  string // Kubernetes version of the cluster, "1.33"

	// Own is the user's own user data, spec.userData. Data is the instance's user data, into which Own was merged.
	// Without Data, only Own is read.
	Own  string
	Data []byte
}

// Reading is the result of reading user data: how an instance would start the kubelet.
type Reading struct {
	Form    string  `json:"form"`    // "a MIME message", "a shell script", …; FormNothing for empty user data
	Kubelet Kubelet `json:"kubelet"` // flags and configuration of the kubelet

	// The resulting settings of the kubelet, from its arguments and its configuration, as far as the user data sets
	// them.
	Cluster    Value   `json:"cluster,omitzero"`    // name
	Endpoint   Value   `json:"endpoint,omitzero"`   // URL of the API server
	NodeIP     Value   `json:"nodeIP,omitzero"`     // IP address of the node
	MaxPods    Value   `json:"maxPods,omitzero"`    // maximum number of pods
	ClusterDNS Value   `json:"clusterDNS,omitzero"` // addresses, separated by commas
	Taints     []Taint `json:"taints,omitempty"`    // taints that the node registers with
	Labels     []Label `json:"labels,omitempty"`    // labels that the node registers with

	// Problems are the errors in the user data, most severe first.
	Problems []Problem `json:"problems,omitempty"`
}

// Kubelet holds the arguments with which the kubelet is started.
type Kubelet struct {
	// Flags are the arguments from the user data, in order.
	Flags []string `json:"flags"`
	// Config holds fields of KubeletConfiguration. A flag of the same meaning takes precedence.
	Config map[string]any `json:"config"`
}

// Value is one setting. It is vague if it is known only on the instance, for instance as the output of a command.
type Value struct {
	Text  string   `json:"text"`            // value of the setting; contains "…" or the constant UnknownText if vague
	Vague bool     `json:"vague,omitempty"` // known only on the instance
	At    Position `json:"at"`              // position of the value
}

// IsSet reports whether the user data contains the setting.
func (v Value) IsSet() bool { return v.Text != "" || v.Vague }

// Taint is a taint that the node registers with.
type Taint struct {
	requirements.Taint
	At Position // position of the taint
}

// MarshalText formats the taint like the kubelet's flag, with its position.
func (t Taint) MarshalText() ([]byte, error) {
	return []byte(t.Taint.String() + inParentheses(t.At)), nil
}

// Label is a label that the node registers with.
type Label struct {
	Key, Value string   // key and value of the label
	At         Position // position of the label
}

// String formats the label like the kubelet's flag.
func (l Label) String() string { return l.Key + "=" + l.Value }

// MarshalText formats the label like the kubelet's flag, with its position.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String() + inParentheses(l.At)), nil }

// Position is a position in user data. The zero value means unknown.
type Position struct {
	Part   int  `json:"part,omitempty"`   // part of a MIME message, from 1; 0: the user data has no parts
	Line   int  `json:"line,omitempty"`   // line of the part, from 1; 0: the whole part
	Column int  `json:"column,omitempty"` // column of the line, from 1; 0: the whole line
	Ours   bool `json:"ours,omitempty"`   // Joiner generated this text, not the user
}

// String formats the position: "part 2, line 3, column 5".
func (p Position) String() string {
	if p.Ours {
		return "written by Joiner"
	}
	var words []string
	for _, n := range []struct {
		name string
		at   int
	}{{"part", p.Part}, {"line", p.Line}, {"column", p.Column}} {
		if n.at > 0 {
			words = append(words, fmt.Sprintf("%s %d", n.name, n.at))
		}
	}
	return strings.Join(words, ", ")
}

// inParentheses returns the position in parentheses, with a leading space; empty if it is unknown.
func inParentheses(p Position) string {
	if p == (Position{}) {
		return ""
	}
	return " (" + p.String() + ")"
}

// The forms of user data.
const (
	FormNothing      = "nothing"
	FormMIME         = "a MIME message"
	FormScript       = "a shell script"
	FormNodeConfig   = "a NodeConfig"
	FormBottlerocket = "settings of Bottlerocket"
	FormPowerShell   = "PowerShell"
	FormCloudConfig  = "a cloud-config"
	FormUnknown      = "unknown"
)

// Reader holds the state while the user data of one instance is read.
type Reader struct {
	In     Input           // the input
	Out    Reading         // the result so far
	Starts []Start         // starts of the kubelet, in the order in which the instance runs them
	Files  map[string]Text // texts of written files, by path; vague: only a part is known
	// Written are the texts that are written to files below /etc, in order.
	Written     []Written
	Unevaluated []string  // reasons why Out may be wrong: parts of the user data that cannot be evaluated here
	OurPart     int       // number of the part that Joiner wrote; 0 if there is none, or if Joiner rewrote all of the text
	TaintFlag   *Argument // the flag that sets the taints of the node; nil: none
}

// Text is a text somewhere in the user data.
type Text struct {
	Body  string   // content of the text
	At    Position // position of its first character
	Vague bool     // a part of it is known only on the instance
}

// Start is one start of the kubelet by the user data.
type Start struct {
	By                        string                      // program that starts the kubelet: BySh, ByNodeadm, …
	At                        Position                    // position of the start
	IsUnconditional           bool                        // the start happens in any case
	Cluster, Endpoint, CA, IP Value                       // name, API server, certificate authority and node address
	Flags                     []Flag                      // arguments of the kubelet
	Config                    map[string]any              // fields of KubeletConfiguration
	Positions                 map[string]Position         // positions of fields of Config, by name
	NodeConfigPositions       map[string]Position         // positions of all fields of a NodeConfig, by path
	Labels                    map[string]Position         // positions of labels, by key; nil: use the flag's position
	Environment               map[string]map[string]Value // environment of services in a NodeConfig, by service and name
	HasUnknownFlags           bool                        // some of the kubelet's flags are known only on the instance
}

// The programs that start kubelets.
const (
	BySh      = "/etc/eks/bootstrap.sh"
	ByNodeadm = "nodeadm"
	BySetting = "Bottlerocket"
	ByPS      = "Start-EKSBootstrap.ps1"
)

// Flag is one word of the kubelet's command line: a flag, a flag with its value, or only the value.
type Flag struct {
	Text string   // text of the word
	At   Position // position of the word
}

// Report adds a problem and returns it. The pointer is valid until the next Report.
func (r *Reader) Report(kind Kind, certainty Certainty, harm Severity, position Position, format string, args ...any) *Problem {
	r.Out.Problems = append(r.Out.Problems,
		Problem{Kind: kind, Certainty: certainty, Harm: harm, At: position, Cause: fmt.Sprintf(format, args...)})
	return &r.Out.Problems[len(r.Out.Problems)-1]
}

// LowerCertainty changes Certain to Likely in r.Out.Problems[first:]. It changes nothing if the instance runs the
// text with the problems in any case (isUnconditional).
func (r *Reader) LowerCertainty(first int, isUnconditional bool) {
	for i := first; i < len(r.Out.Problems) && !isUnconditional; i++ {
		if p := &r.Out.Problems[i]; p.Certainty == Certain {
			p.Certainty = Likely
		}
	}
}
