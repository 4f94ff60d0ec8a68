package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statement is what an object, an event or EC2 says.
type statement struct {
	subject string // "NodeClaim x", "event on NodeClaim x"
	text    string // on one line
	class   string // EC2NodeClass that it is about, if that is known
}

// String is the statement as a line of evidence. What only AWS can read of a denial is left out.
func (s statement) String() string {
	text, _, _ := strings.Cut(s.text, " Encoded authorization failure message:")
	return s.subject + ": " + quote(text)
}

// said is what claims, classes, events and the ends of instances say that has all of the words, without regard to case. What was
// overcome since is left out.
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
			if c.Status != "True" {
				add(statement{subject, c.Reason + ": " + c.Message, class})
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
		if !d.isOver(i) {
			add(statement{"instance " + i.ID, i.StateReason, i.Class})
		}
	}
	for _, v := range d.Events.Value {
		if !d.isPast(v) {
			add(statement{subject: "event on " + v.Kind + " " + v.Name, text: v.Reason + ": " + v.Message, class: d.classOf(v)})
		}
	}
	return out
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

// controllerARN is the controller's role, with ACCOUNT and CONTROLLER_ROLE for what is not known.
func (d *desk) controllerARN() string {
	if arn := d.Controller.Value.Role; arn != "" {
		return arn
	}
	return "arn:" + d.Cluster.Value.partition() + ":iam::" + orElse(d.Account, "ACCOUNT") + ":role/CONTROLLER_ROLE"
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
	class, _ := d.class(said[0].class)
	key := "KEY_ID"
	if len(class.Keys) > 0 {
		key = class.Keys[0]
	}
	if strings.Contains(said[0].text, "InvalidState") {
		return []Finding{broken("", Certain, "EC2 cannot use the KMS key of the volumes, for it is disabled or about to be deleted: instances end as soon as they start").
			with(asLines(said)...).mend(d.forgetting(said, fmt.Sprintf("aws kms enable-key --region %s --key-id %s", d.Region, key))...)}
	}
	return []Finding{broken("", Certain, "EC2 cannot use the KMS key of the volumes: instances end as soon as they start").with(asLines(said)...).
		mend(d.forgetting(said, fmt.Sprintf("aws kms create-grant --region %s --key-id %s --grantee-principal %s "+
			"--operations Decrypt Encrypt GenerateDataKey GenerateDataKeyWithoutPlaintext ReEncryptFrom ReEncryptTo CreateGrant DescribeKey", d.Region, key, d.controllerARN()))...)}
}

// forgetting adds to a fix that the NodeClaims of instances that have ended are deleted: the controller looks for them every two
// minutes, and buys others then.
func (d *desk) forgetting(said []statement, fix ...string) []string {
	const most = 5 // what fits in a line
	var names []string
	for _, i := range d.Instances.Value {
		told := slices.ContainsFunc(said, func(s statement) bool { return s.subject == "instance "+i.ID })
		for _, c := range d.Claims.Value {
			if told && !i.runs() && !c.Deleting && strings.HasSuffix(c.ProviderID, "/"+i.ID) && len(names) < most {
				names = append(names, c.Name)
			}
		}
	}
	if len(names) == 0 {
		return fix
	}
	return append(fix, "kubectl delete nodeclaim --wait=false "+strings.Join(names, " "))
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
			return []Finding{f.mend("aws organizations list-policies-for-target --filter SERVICE_CONTROL_POLICY --target-id " + orElse(d.Account, "ACCOUNT") + "   # in the management account: one of them, or of the units above, denies it")}
		}
		return []Finding{f.mend(fmt.Sprintf("aws organizations detach-policy --policy-id %s --target-id %s   # in the management account; or exempt %s in it", roleName(arn), orElse(d.Account, "ACCOUNT"), d.controllerARN()))}
	case strings.Contains(text, "explicit deny") && arn != "":
		return []Finding{broken("", Certain, "a policy of the controller's role denies it to launch instances").with(asLines(said)...).
			mend(fmt.Sprintf("aws iam detach-role-policy --role-name %s --policy-arn %s   # or take the Deny out of it", orElse(roleName(d.Controller.Value.Role), "CONTROLLER_ROLE"), arn))}
	}
	return []Finding{broken("", Certain, "a policy does not let the controller launch instances").with(asLines(said)...).
		mend("aws sts decode-authorization-message --encoded-message MESSAGE   # the statement that denies; the controller's policies are in deploy/iam")}
}

// policyIn finds the ARN of the policy that a denial names; empty if it names none.
func policyIn(text string) string {
	_, rest, ok := strings.Cut(text, "policy: arn:")
	if !ok {
		return ""
	}
	arn, _, _ := strings.Cut(rest, " ")
	return "arn:" + strings.TrimRight(arn, ".,;)")
}

// recently is how long what was said of a NodeClaim counts that was given up since.
const recently = 2 * time.Minute

// lately is what events have told of NodeClaims that are gone, with the words of one of several alternatives: a launch that EC2 refuses ends its
// NodeClaim at once, and the next comes only some time later. What was launched since has overcome it.
func (d *desk) lately(alternatives ...[]string) []statement {
	var out []statement
	for _, v := range d.Events.Value {
		_, there := d.claim(v.Name)
		overcome := slices.ContainsFunc(d.Instances.Value, func(i Instance) bool { return i.Launched.After(v.Last) })
		if v.Kind != "NodeClaim" || there || overcome || d.At.Sub(v.Last) > recently || v.Last.IsZero() {
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
		words      [][]string
		kind, code string
	}{
		{[][]string{{"MaxSpotInstanceCountExceeded"}, {"SpotQuotaExceeded"}}, "spot vCPUs", "L-34B43A08"},
		{[][]string{{"VcpuLimitExceeded"}, {"VCPULimitExceeded"}, {"InstanceLimitExceeded"}}, "vCPUs", "L-1216C47A"},
	} {
		said := append(d.anyOf(q.words...), d.lately(q.words...)...)
		if len(said) == 0 {
			continue
		}
		wish := most
		if _, rest, ok := strings.Cut(said[0].text, "vCPU limit of "); ok {
			digits, _, _ := strings.Cut(rest, " ")
			if n, err := strconv.Atoi(digits); err == nil {
				wish = max(2*n, 64)
			}
		}
		return []Finding{broken("", Certain, "the account's quota of %s is used up", q.kind).with(asLines(said)...).
			mend(fmt.Sprintf("aws service-quotas request-service-quota-increase --region %s --service-code ec2 --quota-code %s --desired-value %d", d.Region, q.code, wish))}
	}
	return nil
}

// judgeImageState: EC2 launches from images that are ready, and that the account has subscribed to if they are sold.
func judgeImageState(d *desk) []Finding {
	if gap, ok := d.Images.gap("the images"); ok {
		return []Finding{gap}
	}
	const other = "select another image in spec.amiSelectorTerms"
	var out []Finding
	for _, c := range d.Classes.Value {
		subject, edit := "EC2NodeClass "+c.Name, "kubectl edit ec2nodeclass "+c.Name+"   # "
		for _, i := range d.Images.Value {
			if (slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID)) && i.State != "" && i.State != "available" {
				out = append(out, broken(subject, Certain, "its image %s is %s, and EC2 launches nothing from it", i.ID, i.State).with(d.Images.Source).
					mend(orElse(c.ownImage("AWS's own image; or wait until yours is available"), edit+"wait until the image is available, or "+other)))
			}
		}
		for _, s := range d.anyOf([]string{"AWS Marketplace"}) {
			// A class that is ready has passed EC2's own trial of a launch, whatever was told before.
			isOld := strings.HasPrefix(s.subject, "event ") && condition(c.Conditions, "Ready").Status == "True"
			if s.class != c.Name || isOld {
				continue
			}
			_, url, _ := strings.Cut(s.text, "https://")
			url, _, _ = strings.Cut(url, " ")
			terms := "https://" + strings.TrimRight(url, ".,;)")
			out = append(out, broken(subject, Certain, "its image is sold in the AWS Marketplace, and the account has not subscribed to it").with(s.String()).
				mend(orElse(c.ownImage("AWS's own image; or accept the terms at "+terms), edit+"accept the terms at "+terms+", or "+other)))
			break
		}
	}
	return out
}
