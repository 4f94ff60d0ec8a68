// Package fix represents the steps that fix a finding: actions on Kubernetes, calls to AWS, commands of joiner, and
// advice.
//
// In: identifiers from the cluster and AWS, each checked against the syntax of its API.
// Out: steps as values, and their text, quoted for a shell.
// Never: a command that contains an invalid identifier, or a step made from arbitrary text.
package fix

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// constant is text in the program's source. Other packages cannot name the type, so they can pass only untyped
// constants: text that was read at run time does not compile.
type constant string

// Value is a part of a command or patch: an identifier, or a part of the program's own text. Its constructors check
// identifiers. The zero value is invalid.
type Value struct {
	kind          string // for messages: "IAM role name"
	text          string // as in a command
	data          any    // the value in JSON; nil: text is the value
	valid         bool   // text has the syntax of its kind
	isPlaceholder bool   // text is a placeholder that the user must replace
}

// Text is text of the program itself.
func Text(text constant) Value { return Value{text: string(text), valid: true} }

// Number is an integer.
func Number(n int) Value { return Value{text: fmt.Sprint(n), data: n, valid: true} }

// Bool is a boolean.
func Bool(b bool) Value { return Value{text: fmt.Sprint(b), data: b, valid: true} }

// Null is JSON null, which removes a field in a merge patch.
func Null() Value { return Value{text: "null", data: json.RawMessage("null"), valid: true} }

// GiB is an amount of storage in Kubernetes notation: "20Gi".
func GiB(n int) Value { return Value{text: fmt.Sprintf("%dGi", n), valid: true} }

// Placeholder is a word that the user must replace. joiner never runs a command that contains a placeholder.
func Placeholder(name constant) Value {
	return Value{text: string(name), valid: true, isPlaceholder: true}
}

// OrPlaceholder returns the value, or a placeholder with this name if the text of the value is empty.
func (v Value) OrPlaceholder(name constant) Value {
	if v.text == "" {
		return Placeholder(name)
	}
	return v
}

// OrElse returns the value, or the other value if the text of the value is empty.
func (v Value) OrElse(other Value) Value {
	if v.text == "" {
		return other
	}
	return v
}

// IsValid reports whether the value may be used in a command.
func (v Value) IsValid() bool { return v.valid }

// String returns the text of the value. It escapes an invalid value.
func (v Value) String() string {
	if !v.valid {
		return Escape(v.text)
	}
	return v.text
}

// Join concatenates values into one word: Key=a,Value=b. If values are invalid, it returns the first of them.
func Join(parts ...Value) Value {
	out := Value{valid: true}
	for _, p := range parts {
		if !p.valid {
			return p
		}
		out.text += p.text
		out.isPlaceholder = out.isPlaceholder || p.isPlaceholder
	}
	return out
}

// maxLength is the maximum length of any identifier in bytes; ARNs are the longest.
const maxLength = 2048

// newValue returns a value. The value is valid if its text matches the grammar and is not too long.
func newValue(kind, text string, grammar *regexp.Regexp) Value {
	return Value{kind: kind, text: text, valid: len(text) <= maxLength && grammar.MatchString(text)}
}

// oneOf returns a value. The value is valid if its text is one of the allowed texts.
func oneOf(kind, text string, allowed ...string) Value {
	return Value{kind: kind, text: text, valid: slices.Contains(allowed, text)}
}

// The syntax of identifiers. A leading hyphen is rejected everywhere, because a command would take it for an option.
const (
	dnsLabel  = `[a-z0-9]([a-z0-9-]*[a-z0-9])?`
	qualified = `[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?` // of label keys after the prefix, and of label values
	iamName   = `[A-Za-z0-9_+=,.@][A-Za-z0-9_+=,.@-]*`
	iamPath   = `(` + iamName + `/)*`
	partition = `aws[a-z-]*`
)

var (
	nameGrammar       = regexp.MustCompile(`^` + dnsLabel + `(\.` + dnsLabel + `)*$`)
	dnsLabelGrammar   = regexp.MustCompile(`^` + dnsLabel + `$`)
	labelKeyGrammar   = regexp.MustCompile(`^(` + dnsLabel + `(\.` + dnsLabel + `)*/)?` + qualified + `$`)
	labelValueGrammar = regexp.MustCompile(`^` + qualified + `$`)
	clusterGrammar    = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)
	regionGrammar     = regexp.MustCompile(`^[a-z]{2,5}(-[a-z]+)+-[0-9]{1,2}$`)
	accountGrammar    = regexp.MustCompile(`^[0-9]{12}$`)
	iamNameGrammar    = regexp.MustCompile(`^` + iamName + `$`)
	roleARNGrammar    = regexp.MustCompile(`^arn:` + partition + `:iam::[0-9]{12}:role/` + iamPath + iamName + `$`)
	policyARNGrammar  = regexp.MustCompile(`^arn:` + partition + `:iam::(aws|[0-9]{12}):policy/` + iamPath + iamName + `$`)
	pathGrammar       = regexp.MustCompile(`^/?` + iamPath + iamName + `$`)
	orgPolicyGrammar  = regexp.MustCompile(`^arn:` + partition +
		`:organizations::[0-9]{12}:policy/o-[a-z0-9]{1,32}/service_control_policy/p-[0-9A-Za-z_]{1,128}$`)
	keyGrammar = regexp.MustCompile(`^(arn:` + partition +
		`:kms:[a-z0-9-]+:[0-9]{12}:)?((key|alias)/)?[A-Za-z0-9][A-Za-z0-9/_-]{0,255}$`)
	typeGrammar     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}\.[a-z0-9][a-z0-9-]{0,30}$`)
	flagGrammar     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
	programGrammar  = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]{0,127}$`)
	checkGrammar    = regexp.MustCompile(`^[A-Z]{2,10}-[0-9]{1,3}$`)
	instanceGrammar = resourceID("i")
	subnetGrammar   = resourceID("subnet")
	groupGrammar    = resourceID("sg")
	vpcGrammar      = resourceID("vpc")
	tableGrammar    = resourceID("rtb")
	natGrammar      = resourceID("nat")
	aclGrammar      = resourceID("acl")
	usernameGrammar = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 :._@{}/+=,-]{0,254}[A-Za-z0-9:._@{}/+=,-])?$`)
)

// resourceID returns the pattern of EC2 resource IDs with a prefix. EC2 generates hexadecimal digits, but its
// documentation allows all letters and digits.
func resourceID(prefix string) *regexp.Regexp {
	return regexp.MustCompile(`^` + prefix + `-[0-9a-z]{1,40}$`)
}

// Name is the name of a Kubernetes object: a DNS subdomain.
func Name(text string) Value {
	v := newValue("name of an object", text, nameGrammar)
	v.valid = v.valid && len(text) <= 253
	return v
}

// Namespace is the name of a namespace: a DNS label.
func Namespace(text string) Value {
	v := newValue("name of a namespace", text, dnsLabelGrammar)
	v.valid = v.valid && len(text) <= 63
	return v
}

// LabelKey is the key of a label or of a taint.
func LabelKey(text string) Value {
	v := newValue("label key", text, labelKeyGrammar)
	prefix, _, isPrefixed := strings.Cut(text, "/")
	v.valid = v.valid && (!isPrefixed || len(prefix) <= 253)
	return v
}

// LabelValue is the value of a label. The empty string is valid.
func LabelValue(text string) Value {
	v := newValue("label value", text, labelValueGrammar)
	v.valid = v.valid || text == ""
	return v
}

// TaintEffect is the effect of a taint.
func TaintEffect(text string) Value {
	return oneOf("effect of a taint", text, "NoSchedule", "PreferNoSchedule", "NoExecute")
}

// Architecture is the architecture of a node.
func Architecture(text string) Value { return oneOf("architecture", text, "amd64", "arm64") }

// Family is an AMI family.
func Family(text string) Value {
	return oneOf("AMI family", text, "AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025")
}

// ClusterName is the name of an EKS cluster.
func ClusterName(text string) Value { return newValue("name of an EKS cluster", text, clusterGrammar) }

// FargateProfile is the name of a Fargate profile.
func FargateProfile(text string) Value {
	return newValue("name of a Fargate profile", text, clusterGrammar)
}

// Region is an AWS region.
func Region(text string) Value { return newValue("AWS region", text, regionGrammar) }

// Account is the ID of an AWS account.
func Account(text string) Value { return newValue("id of an AWS account", text, accountGrammar) }

// RoleName is the name of an IAM role, without its path.
func RoleName(text string) Value {
	v := newValue("name of an IAM role", text, iamNameGrammar)
	v.valid = v.valid && len(text) <= 64
	return v
}

// RoleOf is the name of an IAM role. The text is a name, a path with a name (/team/node), or an ARN; the whole text
// must be valid.
func RoleOf(text string) Value {
	if !strings.Contains(text, "/") && !strings.HasPrefix(text, "arn:") {
		return RoleName(text)
	}
	if !roleARNGrammar.MatchString(text) && !pathGrammar.MatchString(text) || len(text) > maxLength {
		return Value{kind: "name or ARN of an IAM role", text: text}
	}
	return RoleName(text[strings.LastIndexByte(text, '/')+1:])
}

// RoleARN is the ARN of an IAM role.
func RoleARN(text string) Value { return newValue("ARN of an IAM role", text, roleARNGrammar) }

// Profile is the name of an instance profile.
func Profile(text string) Value {
	v := newValue("name of an instance profile", text, iamNameGrammar)
	v.valid = v.valid && len(text) <= 128
	return v
}

// Policy is the ARN of an IAM policy.
func Policy(text string) Value { return newValue("ARN of an IAM policy", text, policyARNGrammar) }

// PolicyName is the name of an inline policy of a role.
func PolicyName(text string) Value {
	v := newValue("name of an IAM policy", text, iamNameGrammar)
	v.valid = v.valid && len(text) <= 128
	return v
}

// OrganizationPolicy is the ID of a service control policy, from its ARN.
func OrganizationPolicy(arn string) Value {
	v := newValue("ARN of a service control policy", arn, orgPolicyGrammar)
	if v.valid {
		v.text = arn[strings.LastIndexByte(arn, '/')+1:]
	}
	return v
}

// Key is the ID, alias or ARN of a KMS key.
func Key(text string) Value { return newValue("KMS key", text, keyGrammar) }

// InstanceType is an EC2 instance type.
func InstanceType(text string) Value { return newValue("instance type", text, typeGrammar) }

// Instance is the ID of an EC2 instance.
func Instance(text string) Value { return newValue("id of an instance", text, instanceGrammar) }

// Subnet is the ID of a subnet.
func Subnet(text string) Value { return newValue("id of a subnet", text, subnetGrammar) }

// Group is the ID of a security group.
func Group(text string) Value { return newValue("id of a security group", text, groupGrammar) }

// VPC is the ID of a VPC.
func VPC(text string) Value { return newValue("id of a VPC", text, vpcGrammar) }

// RouteTable is the ID of a route table.
func RouteTable(text string) Value { return newValue("id of a route table", text, tableGrammar) }

// NAT is the ID of a NAT gateway.
func NAT(text string) Value { return newValue("id of a NAT gateway", text, natGrammar) }

// ACL is the ID of a network ACL.
func ACL(text string) Value { return newValue("id of a network ACL", text, aclGrammar) }

// Flag is the name of a kubelet's flag, without its hyphens.
func Flag(text string) Value { return newValue("name of a flag", text, flagGrammar) }

// Program is the name or path of a program.
func Program(text string) Value { return newValue("name of a program", text, programGrammar) }

// Check is the ID of a check of doctor.
func Check(text string) Value { return newValue("id of a check", text, checkGrammar) }

// Username is a Kubernetes user or group, as used in aws-auth.
func Username(text string) Value {
	return newValue("name of a user or group of Kubernetes", text, usernameGrammar)
}

// FieldText is the complete new text of a field, such as mapRoles in aws-auth; it may repeat parts of the present text.
// It may contain only line ends and characters that a terminal shows unchanged.
func FieldText(text string) Value {
	const most = 100_000 // bytes; an argument of a command may have up to 128 KiB
	hasHidden := strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !isVisible(r) })
	return Value{kind: "text that a terminal shows as it is", text: text, valid: !hasHidden && utf8.ValidString(text) && len(text) <= most}
}
