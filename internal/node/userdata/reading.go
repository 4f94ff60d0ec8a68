// Package userdata has what all formats of user data share: input and result of reading it, and the problems found.
// Package userdata/reading reads it.
//
// In: the AMI family, what is known of the image and of the cluster, and user data in any of its forms.
// Out: Reading: how the kubelet is started, where each argument came from, and typed problems. Reader collects them.
// Never: a word of the user's in a problem, except names that are no secrets.
package userdata

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Soften makes problems, from the one of a number on, no more than likely if what they are about may not be run at all.
func (r *Reader) Soften(first int, sure bool) {
	for i := first; i < len(r.Out.Problems) && !sure; i++ {
		if p := &r.Out.Problems[i]; p.Certainty == Certain {
			p.Certainty = Likely
		}
	}
}

// Argument is one flag of the kubelet with its value.
type Argument struct {
	Name, Value string
	At          Spot
	HasValue    bool
}

// The content types that an instance acts on.
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
	Text Text
}

// Written is a text that user data writes into a file, or adds to it.
type Written struct {
	Path string
	Text Text
}

// Input is what is to be read, and what is known of who reads it. Only Family
// must be given; what is not known is not judged.
type Input struct {
	Family string // of the node class, one of catalog's AMI families
	Image  string // name of the image, which may reveal its actual family
	Arch   string // of the image: "amd64" or "arm64"

	Cluster  string // name of the cluster that the node is to join
	Endpoint string // of its API server, "https://…"
	CA       string // its certificate authority, as base64 of PEM
	Version  string // of its Kubernetes, "1.33"

	// Own is the user's own user data, spec.userData; Data is what the instance
	// gets, into which it was merged. Without Data, Own is all there is.
	Own  string
	Data []byte
}

// Reading is what an instance makes of its user data.
type Reading struct {
	Form    string  `json:"form"` // "a MIME message", "a shell script", …; FormNothing if it is empty
	Kubelet Kubelet `json:"kubelet"`

	// What the kubelet will make of its arguments and its configuration, as far as the user data sets it.
	Cluster    Value   `json:"cluster,omitzero"` // name
	Endpoint   Value   `json:"endpoint,omitzero"`
	NodeIP     Value   `json:"nodeIP,omitzero"`
	MaxPods    Value   `json:"maxPods,omitzero"`
	ClusterDNS Value   `json:"clusterDNS,omitzero"` // several with commas between
	Taints     []Taint `json:"taints,omitempty"`
	Labels     []Label `json:"labels,omitempty"`

	// Problems are what is wrong, the gravest first.
	Problems []Problem `json:"problems,omitempty"`
}

// Kubelet is how the kubelet is started.
type Kubelet struct {
	// Flags are the arguments that the user data gives it, in their order.
	Flags []string `json:"flags"`
	// Config are fields of its KubeletConfiguration. A flag of the same meaning wins.
	Config map[string]any `json:"config"`
}

// Value is one setting. It is vague when the instance works it out, for instance by running a command.
type Value struct {
	Text  string `json:"text"`
	Vague bool   `json:"vague,omitempty"`
	At    Spot   `json:"at"`
}

// IsSet reports whether the user data sets it.
func (v Value) IsSet() bool { return v.Text != "" || v.Vague }

// Taint is a taint that the node registers with.
type Taint struct {
	requirements.Taint
	At Spot
}

// MarshalText writes the taint as the kubelet's flag has it, and its place.
func (t Taint) MarshalText() ([]byte, error) { return []byte(t.Taint.String() + at(t.At)), nil }

// Label is a label that the node registers with.
type Label struct {
	Key, Value string
	At         Spot
}

// String writes the label as the kubelet's flag has it.
func (l Label) String() string { return l.Key + "=" + l.Value }

// MarshalText writes the label as the kubelet's flag has it, and its place.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String() + at(l.At)), nil }

// Spot is a place in user data.
type Spot struct {
	Part   int  `json:"part,omitempty"` // of a MIME message, from 1; 0: it has no parts
	Line   int  `json:"line,omitempty"` // of the part, from 1; 0: all of it
	Column int  `json:"column,omitempty"`
	Ours   bool `json:"ours,omitempty"` // the user wrote none of it: it is what Joiner adds
}

// String is for instance "part 2, line 3, column 5".
func (s Spot) String() string {
	if s.Ours {
		return "written by Joiner"
	}
	var words []string
	for _, n := range []struct {
		name string
		at   int
	}{{"part", s.Part}, {"line", s.Line}, {"column", s.Column}} {
		if n.at > 0 {
			words = append(words, fmt.Sprintf("%s %d", n.name, n.at))
		}
	}
	return strings.Join(words, ", ")
}

func at(s Spot) string {
	if s == (Spot{}) {
		return ""
	}
	return " (" + s.String() + ")"
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

// Reader is one reading on its way.
type Reader struct {
	In     Input
	Out    Reading
	Starts []Start // of the kubelet, in the order in which they would happen
	Files  map[string]Text
	// written is what files are made of, in the order in which it is written.
	Written []Written
	Opaque  []string  // why the result may differ: what only the instance can know
	Ours    int       // the part that Joiner wrote; 0: none, or all of it is rewritten
	Flag    *Argument // the one that says with which taints the node registers; nil: none does
}

// Text is a text somewhere in the user data.
type Text struct {
	Body  string
	At    Spot // of its first character
	Vague bool
}

// Start is one way in which the user data starts the kubelet.
type Start struct {
	By                        string // bySh, byNodeadm, …
	At                        Spot
	Sure                      bool // it happens in any case
	Cluster, Endpoint, CA, IP Value
	Flags                     []Flag
	Config                    map[string]any
	Spots                     map[string]Spot             // of fields of config, by name
	Within                    map[string]Spot             // of all fields of a NodeConfig, by path
	Labels                    map[string]Spot             // of labels, by key, where each has a place of its own
	Environment               map[string]map[string]Value // by service and name, of a NodeConfig
	Hidden                    bool                        // some of its flags are not known
}

// What starts kubelets.
const (
	BySh      = "/etc/eks/bootstrap.sh"
	ByNodeadm = "nodeadm"
	BySetting = "Bottlerocket"
	ByPS      = "Start-EKSBootstrap.ps1"
)

// Flag is one argument of the kubelet.
type Flag struct {
	Text string
	At   Spot
}

// Report notes what is wrong.
func (r *Reader) Report(kind Kind, certainty Certainty, harm Harm, spot Spot, format string, args ...any) *Problem {
	r.Out.Problems = append(r.Out.Problems,
		Problem{Kind: kind, Certainty: certainty, Harm: harm, At: spot, Cause: fmt.Sprintf(format, args...)})
	return &r.Out.Problems[len(r.Out.Problems)-1]
}
