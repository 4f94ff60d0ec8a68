package diagnosis

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// statement is a message of a condition, of an event or of EC2.
type statement struct {
	subject string // "NodeClaim x", "event on NodeClaim x"
	text    string // on one line
	class   string // the EC2NodeClass that it is about, if known
	tagged  bool   // only the tags of an instance link it to this cluster
}

// String returns the statement as a line of evidence. The encoded part of a denial, which only AWS can read, is left out.
func (s statement) String() string {
	text, _, _ := strings.Cut(s.text, " Encoded authorization failure message:")
	return s.subject + ": " + quote(text)
}

// said is what the conditions of NodeClaims and EC2NodeClasses and the ends of instances say that has all of the words, without regard to case:
// what EC2 has answered, and no event, which others may write. What was overcome since is left out.
func (d *desk) said(words ...string) []statement {
	var out []statement
	add := func(s statement) {
		s.text = strings.Join(strings.Fields(s.text), " ")
		lower := strings.ToLower(s.text)
		lacks := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lower, strings.ToLower(w)) })
		if !lacks && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	conditions := func(subject, class string, all []Condition) {
		for _, c := range all {
			if c.Status != "True" && c.isAnswer(words) {
				add(statement{subject: subject, text: c.Reason + ": " + c.Message, class: class})
			}
		}
	}
	for _, c := range d.Classes.Value {
		conditions("EC2NodeClass "+c.Name, c.Name, c.Conditions)
	}
	for _, c := range d.Claims.Value {
		conditions("NodeClaim "+c.Name, c.Class, c.Conditions)
	}
	for _, i := range d.Instances.Value {
		isTagged := i.Claim == "" && d.isTaggedOurs(i)
		if (i.Claim != "" || isTagged) && !d.isOver(i) {
			class := i.Class
			if isTagged {
				class = ""
			}
			add(statement{subject: "instance " + i.ID, text: i.StateReason, class: class, tagged: isTagged})
		}
	}
	return out
}

// isTaggedOurs reports whether the instance's tags say that it is of this cluster, as far as that can be compared: where only AWS was read, all are.
func (d *desk) isTaggedOurs(i Instance) bool {
	isAWSAlone := !d.Claims.Known() && !d.Classes.Known()
	return isAWSAlone || d.Home.Known() && i.UID == d.Home.Value.UID
}

// isAnswer reports whether the condition repeats an answer of EC2 or IAM about the words. Conditions with other reasons repeat input of the
// author of an EC2NodeClass: user data, tags, names.
func (c Condition) isAnswer(words []string) bool {
	switch c.Reason {
	case "BlockDeviceMappingInvalid":
		return slices.Equal(words, []string{"InvalidBlockDeviceMapping"})
	case "UserDataSizeLimitExceeded":
		return slices.Equal(words, []string{"user data is limited to"})
	case "InstanceProfileNotFound", "InstanceProfileNameInvalid":
		return words[0] == "instance profile"
	case "Unauthorized", "UnauthorizedOperation", "SpotSLRCreationFailed", "KMSKeyUnusable", "MarketplaceSubscriptionMissing", "RegionNotEnabled",
		"VCPULimitExceeded", "SpotQuotaExceeded", "InsufficientFreeAddressesInSubnet", "InsufficientCapacity", "InsufficientCapacityError", "LaunchFailed":
		return true
	}
	return strings.HasSuffix(c.Reason, "AuthCheckFailed")
}

// isOver reports whether what ended an instance does not end those of its class any more: a later one became a node, or was ended by
// somebody, as EC2 had let it live; or the class is gone. EC2 tells of instances for an hour after their end: nodes may be long given back by then.
func (d *desk) isOver(i Instance) bool {
	if _, there := d.class(i.Class); !there && d.Classes.Known() && i.Class != "" {
		return true
	}
	return slices.ContainsFunc(d.Instances.Value, func(later Instance) bool {
		node, isNode := d.joined[later.ID]
		lived := isNode && node.Ready || !later.runs() && strings.Contains(later.StateReason, "User initiated")
		return later.Class == i.Class && later.Launched.After(i.Launched) && lived
	})
}

func (d *desk) claim(name string) (Claim, bool) {
	i := slices.IndexFunc(d.Claims.Value, func(c Claim) bool { return c.Name == name })
	if i < 0 {
		return Claim{}, false
	}
	return d.Claims.Value[i], true
}

func (d *desk) classOf(v Event) string {
	switch v.Kind {
	case "NodeClaim":
		c, _ := d.claim(v.Name)
		return c.Class
	case "EC2NodeClass":
		return v.Name
	}
	return ""
}

// unheard is the gap of a check that rests on what is said, where nobody could be heard.
func (d *desk) unheard() ([]Finding, bool) {
	if d.Claims.Known() || d.Events.Known() || d.Instances.Known() {
		return nil, false
	}
	gap, _ := d.Claims.gap("the NodeClaims")
	return []Finding{gap}, true
}

// anyOf is what is said with the words of one of several alternatives, but for what another check knows better.
func (d *desk) anyOf(alternatives ...[]string) []statement {
	var out []statement
	for _, words := range alternatives {
		for _, s := range d.said(words...) {
			if !slices.Contains(out, s) && !strings.Contains(s.text, "iam:PassRole") && !strings.Contains(s.text, "ServiceLinkedRole") {
				out = append(out, s)
			}
		}
	}
	return out
}

func asLines(all []statement) []string {
	var out []string
	for _, s := range all[:min(3, len(all))] {
		out = append(out, s.String())
	}
	return out
}

// controllerARN is the controller's role, or a placeholder.
func (d *desk) controllerARN() fix.Value {
	return fix.RoleARN(d.Controller.Value.Role).Or("CONTROLLER_ROLE_ARN")
}

// judgeKey: EBS uses the key in the name of who launches, and EC2 says of it only how the instance ended.
func judgeKey(d *desk) []Finding {
	if gap, ok := d.unheard(); ok {
		return gap
	}
	said := d.anyOf([]string{"InvalidKMSKey"}, []string{"KMSKeyUnusable"}, []string{"Client.InternalError"}, []string{"kms", "not authorized"})
	if len(said) == 0 {
		return nil
	}
	key, certainty := d.keyOf(said[0].class), Certain
	if !slices.ContainsFunc(said, func(s statement) bool { return !s.tagged }) { // anyone who may tag instances can cause this
		certainty = Likely
	}
	if strings.Contains(said[0].text, "InvalidState") {
		return []Finding{broken("", certainty, "EC2 cannot use the KMS key of the volumes, for it is disabled or about to be deleted: instances end as soon as they start").
			with(asLines(said)...).mend(d.forgetting(said, fix.Call("kms", "enable-key", d.inRegion(), fix.P("--key-id", key)))...)}
	}
	return []Finding{broken("", certainty, "EC2 cannot use the KMS key of the volumes: instances end as soon as they start").with(asLines(said)...).
		mend(d.forgetting(said, fix.Call("kms", "create-grant", d.inRegion(), fix.P("--key-id", key), fix.P("--grantee-principal", d.controllerARN()),
			fix.P("--operations", fix.Text("Decrypt"), fix.Text("Encrypt"), fix.Text("GenerateDataKey"), fix.Text("GenerateDataKeyWithoutPlaintext"),
				fix.Text("ReEncryptFrom"), fix.Text("ReEncryptTo"), fix.Text("CreateGrant"), fix.Text("DescribeKey"))))...)}
}

// keyOf is the KMS key of a class; where the class is not known, the only one that any class has.
func (d *desk) keyOf(name string) fix.Value {
	var keys []string
	for _, c := range d.Classes.Value {
		if name == "" || c.Name == name {
			keys = append(keys, c.Keys...)
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > 0 && (name != "" || len(keys) == 1) {
		return fix.Key(keys[0])
	}
	return fix.Blank("KEY_ID")
}

// forgetting adds to a fix that the NodeClaims of instances that have ended are deleted: the controller looks for them every two
// minutes, and buys others then.
func (d *desk) forgetting(said []statement, steps ...fix.Step) []fix.Step {
	const most = 5 // what fits in a line
	var claims []fix.Claim
	for _, i := range d.Instances.Value {
		told := slices.ContainsFunc(said, func(s statement) bool { return s.subject == "instance "+i.ID })
		for _, c := range d.Claims.Value {
			if told && !i.runs() && !c.Deleting && c.of(i) && len(claims) < most {
				claims = append(claims, fix.Claim{Name: c.Name, Instance: i.ID})
			}
		}
	}
	if len(claims) == 0 {
		return steps
	}
	return append(steps, fix.DeleteClaims(claims...))
}

// judgeDenial: IAM names the policy that denies, if it is of the same account or organization.
func judgeDenial(d *desk) []Finding {
	if gap, ok := d.unheard(); ok {
		return gap
	}
	said := d.anyOf([]string{"explicit deny"}, []string{"service control policy"}, []string{"UnauthorizedOperation"},
		[]string{"encoded authorization failure"}, []string{"not authorized to perform", "ec2:"})
	if len(said) == 0 {
		return nil
	}
	text := said[0].text
	arn := policyIn(text)
	switch {
	case strings.Contains(text, "service control policy"):
		f := broken("", Certain, "a service control policy of the organization does not let the controller launch instances").with(asLines(said)...)
		if arn == "" {
			return []Finding{f.mend(fix.Call("organizations", "list-policies-for-target", fix.P("--filter", fix.Text("SERVICE_CONTROL_POLICY")),
				fix.P("--target-id", fix.Account(d.Account).Or("ACCOUNT"))).With("in the management account: one of them, or of the units above, denies it"))}
		}
		return []Finding{f.mend(fix.Call("organizations", "detach-policy", fix.P("--policy-id", fix.OrganizationPolicy(arn)),
			fix.P("--target-id", fix.Account(d.Account).Or("ACCOUNT"))).With("in the management account; or exempt %s in it", d.controllerARN()))}
	case strings.Contains(text, "explicit deny") && arn != "":
		return []Finding{broken("", Certain, "a policy of the controller's role denies it to launch instances").with(asLines(said)...).
			mend(fix.Call("iam", "detach-role-policy", fix.P("--role-name", fix.RoleOf(d.Controller.Value.Role).Or("CONTROLLER_ROLE")),
				fix.P("--policy-arn", fix.Policy(arn))).With("or take the Deny out of it"))}
	}
	return []Finding{broken("", Certain, "a policy does not let the controller launch instances").with(asLines(said)...).
		mend(fix.Call("sts", "decode-authorization-message", fix.P("--encoded-message", fix.Blank("MESSAGE"))).
			With("the statement that denies; the controller's policies are in deploy/iam"))}
}

// policyIn returns the ARN of the policy that a denial names; empty if it names none.
func policyIn(text string) string {
	_, rest, ok := strings.Cut(text, "policy: arn:")
	if !ok {
		return ""
	}
	arn, _, _ := strings.Cut(rest, " ")
	return "arn:" + strings.TrimRight(arn, ".,;)")
}

// recently is how long statements about deleted NodeClaims count.
const recently = 2 * time.Minute

// lately is what events have told of NodeClaims that are gone, with the words of one of several alternatives: a launch that EC2 refuses ends its
// NodeClaim at once, and the next comes only some time later. What was launched since has overcome it. As their UID is not known any more, they
// are never certain.
func (d *desk) lately(alternatives ...[]string) []statement {
	var out []statement
	for _, v := range d.Events.Value {
		_, there := d.claim(v.Name)
		overcome := slices.ContainsFunc(d.Instances.Value, func(i Instance) bool { return i.Launched.After(v.Last) })
		if v.Kind != "NodeClaim" || !v.isOfController() || there || overcome || d.At.Sub(v.Last) > recently || v.Last.IsZero() {
			continue
		}
		text := strings.Join(strings.Fields(v.Reason+": "+v.Message), " ")
		if slices.ContainsFunc(alternatives, func(words []string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
		}) {
			out = append(out, statement{subject: "event on NodeClaim " + v.Name, text: text})
		}
	}
	return out
}

// judgeQuota: each kind of instance has a quota of its own, and so has spot.
func judgeQuota(d *desk) []Finding {
	if gap, ok := d.unheard(); ok {
		return gap
	}
	const most = 256
	for _, q := range []struct {
		words [][]string
		kind  string
		code  fix.Value
	}{
		{[][]string{{"MaxSpotInstanceCountExceeded"}, {"SpotQuotaExceeded"}}, "spot vCPUs", fix.Text("L-34B43A08")},
		{[][]string{{"VcpuLimitExceeded"}, {"VCPULimitExceeded"}, {"InstanceLimitExceeded"}}, "vCPUs", fix.Text("L-1216C47A")},
	} {
		said, certainty := d.anyOf(q.words...), Certain
		if len(said) == 0 {
			said, certainty = append(d.heardOf(q.words...), d.lately(q.words...)...), Likely
		}
		if len(said) == 0 {
			continue
		}
		wish := most
		if _, rest, ok := strings.Cut(said[0].text, "vCPU limit of "); ok {
			digits, _, _ := strings.Cut(rest, " ")
			if n, err := strconv.Atoi(digits); err == nil && certainty == Certain {
				wish = max(2*n, 64)
			}
		}
		return []Finding{broken("", certainty, "the account's quota of %s is used up", q.kind).with(asLines(said)...).
			mend(fix.Call("service-quotas", "request-service-quota-increase", d.inRegion(), fix.P("--service-code", fix.Text("ec2")), fix.P("--quota-code", q.code),
				fix.P("--desired-value", fix.Number(wish))))}
	}
	return nil
}

// judgeImageState: EC2 launches from images that are ready, and that the account has subscribed to if they are sold.
func judgeImageState(d *desk) []Finding {
	if gap, ok := d.Images.gap("the images"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		subject, edit := "EC2NodeClass "+c.Name, fix.Edit(fix.NodeClass(c.Name))
		for _, i := range d.Images.Value {
			if (slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID)) && i.State != "" && i.State != "available" {
				out = append(out, broken(subject, Certain, "its image %s is %s, and EC2 launches nothing from it", i.ID, i.State).with(d.Images.Source).
					mend(c.ownImageOr(edit.With("wait until the image is available, or select another image in spec.amiSelectorTerms"),
						func(s fix.Step) fix.Step { return s.With("AWS's own image; or wait until yours is available") })))
			}
		}
		for _, s := range d.anyOf([]string{"AWS Marketplace"}) {
			if s.class != c.Name {
				continue
			}
			_, url, _ := strings.Cut(s.text, "https://")
			url, _, _ = strings.Cut(url, " ")
			terms := "https://" + strings.TrimRight(url, ".,;)")
			if !strings.HasPrefix(terms, "https://aws.amazon.com/marketplace/") {
				terms = "https://aws.amazon.com/marketplace" // the text is not only AWS's
			}
			out = append(out, broken(subject, Certain, "its image is sold in the AWS Marketplace, and the account has not subscribed to it").with(s.String()).
				mend(c.ownImageOr(edit.With("accept the terms at %s, or select another image in spec.amiSelectorTerms", terms),
					func(s fix.Step) fix.Step { return s.With("AWS's own image; or accept the terms at %s", terms) })))
			break
		}
	}
	return out
}
