package launch

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// statementsGap returns an Unknown finding and true if none of the NodeClaims, events and instances could be read, so
// there are no statements (texts of AWS errors).
func statementsGap(ix *index.Index) ([]diagnosis.Finding, bool) {
	if ix.Evidence.Claims.Known() || ix.Evidence.Events.Known() || ix.Evidence.Instances.Known() {
		return nil, false
	}
	gap, _ := ix.Evidence.Claims.Gap("the NodeClaims")
	return []diagnosis.Finding{gap}, true
}

// statementsWithAny returns the statements that contain all substrings of at least one alternative, without those that
// AUTH-8 and LAUNCH-3 judge.
func statementsWithAny(ix *index.Index, alternatives ...[]string) []index.Statement {
	var out []index.Statement
	for _, substrings := range alternatives {
		for _, s := range ix.StatementsWith(substrings...) {
			if !slices.Contains(out, s) && !strings.Contains(s.Text, "iam:PassRole") && !strings.Contains(s.Text, "ServiceLinkedRole") {
				out = append(out, s)
			}
		}
	}
	return out
}

func firstLines(statements []index.Statement) []string {
	var out []string
	for _, s := range statements[:min(3, len(statements))] {
		out = append(out, s.String())
	}
	return out
}

func controllerARN(ix *index.Index) fix.Value {
	return fix.RoleARN(ix.Evidence.Controller.Value.Role).OrPlaceholder("CONTROLLER_ROLE_ARN")
}

// judgeKey reports that EC2 cannot use the KMS key of the volumes. EBS uses the key with the permissions of the
// controller, which launches the instance. EC2 reports a failure only as the reason why the instance ended.
func judgeKey(ix *index.Index) []diagnosis.Finding {
	if gap, ok := statementsGap(ix); ok {
		return gap
	}
	statements := statementsWithAny(ix, []string{"InvalidKMSKey"}, []string{"KMSKeyUnusable"}, []string{"Client.InternalError"},
		[]string{"kms", "not authorized"})
	if len(statements) == 0 {
		return nil
	}
	key, certainty := keyOf(ix, statements[0].Class), diagnosis.Certain
	// If only tags link all statements to this cluster, the finding is not certain: anyone who may tag instances can
	// forge such statements.
	if !slices.ContainsFunc(statements, func(s index.Statement) bool { return !s.TagsOnly }) {
		certainty = diagnosis.Likely
	}
	if strings.Contains(statements[0].Text, "InvalidState") {
		return []diagnosis.Finding{diagnosis.ReportBroken("", certainty, "EC2 cannot use the KMS key of the volumes, because the key is disabled or about to be deleted: instances end as soon as they start").
			With(firstLines(statements)...).FixedBy(withClaimDeletion(ix, statements,
			fix.Call("kms", "enable-key", ix.RegionParam(), fix.P("--key-id", key)))...)}
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", certainty,
		"EC2 cannot use the KMS key of the volumes: instances end as soon as they start").With(firstLines(statements)...).
		FixedBy(withClaimDeletion(ix, statements,
			fix.Call("kms", "create-grant", ix.RegionParam(), fix.P("--key-id", key), fix.P("--grantee-principal", controllerARN(ix)),
				fix.P("--operations", fix.Text("Decrypt"), fix.Text("Encrypt"), fix.Text("GenerateDataKey"),
					fix.Text("GenerateDataKeyWithoutPlaintext"),
					fix.Text("ReEncryptFrom"), fix.Text("ReEncryptTo"), fix.Text("CreateGrant"), fix.Text("DescribeKey"))))...)}
}

// keyOf returns the first KMS key of a class. If name is empty, it returns the only key of all classes. If there is no
// such key, it returns a placeholder.
func keyOf(ix *index.Index, name string) fix.Value {
	var keys []string
	for _, c := range ix.Evidence.Classes.Value {
		if name == "" || c.Name == name {
			keys = append(keys, c.Keys...)
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > 0 && (name != "" || len(keys) == 1) {
		return fix.Key(keys[0])
	}
	return fix.Placeholder("KEY_ID")
}

// withClaimDeletion returns the steps, followed by a step that deletes the NodeClaims of the ended instances in the
// statements. The controller then replaces the instances at once. Without the deletion, it finds them within two
// minutes.
func withClaimDeletion(ix *index.Index, statements []index.Statement, steps ...fix.Step) []fix.Step {
	const most = 5 // NodeClaims; more would not fit in a line
	var claims []fix.Claim
	for _, i := range ix.Evidence.Instances.Value {
		isReported := slices.ContainsFunc(statements, func(s index.Statement) bool { return s.Subject == "instance "+i.ID })
		for _, c := range ix.Evidence.Claims.Value {
			if isReported && !i.Runs() && !c.Deleting && c.IsOf(i) && len(claims) < most {
				claims = append(claims, fix.Claim{Name: c.Name, Instance: i.ID})
			}
		}
	}
	if len(claims) == 0 {
		return steps
	}
	return append(steps, fix.DeleteClaims(claims...))
}

// judgeDenial reports policies that forbid launching. IAM's error names the policy if the policy is in the same account
// or organization.
func judgeDenial(ix *index.Index) []diagnosis.Finding {
	if gap, ok := statementsGap(ix); ok {
		return gap
	}
	statements := statementsWithAny(ix, []string{"explicit deny"}, []string{"service control policy"}, []string{"UnauthorizedOperation"},
		[]string{"encoded authorization failure"}, []string{"not authorized to perform", "ec2:"})
	if len(statements) == 0 {
		return nil
	}
	text := statements[0].Text
	arn := policyIn(text)
	switch {
	case strings.Contains(text, "service control policy"):
		f := diagnosis.ReportBroken("", diagnosis.Certain,
			"a service control policy of the organization does not let the controller launch instances").With(firstLines(statements)...)
		if arn == "" {
			return []diagnosis.Finding{f.FixedBy(fix.Call("organizations", "list-policies-for-target",
				fix.P("--filter", fix.Text("SERVICE_CONTROL_POLICY")),
				fix.P("--target-id",
					fix.Account(ix.Evidence.Account).OrPlaceholder("ACCOUNT"))).With("in the management account: one of these policies, or a policy of a parent OU, denies the launch"))}
		}
		return []diagnosis.Finding{f.FixedBy(fix.Call("organizations", "detach-policy", fix.P("--policy-id", fix.OrganizationPolicy(arn)),
			fix.P("--target-id",
				fix.Account(ix.Evidence.Account).OrPlaceholder("ACCOUNT"))).With("in the management account; or exempt %s in it", controllerARN(ix)))}
	case strings.Contains(text, "explicit deny") && arn != "":
		return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain,
			"a policy of the controller's role denies launching instances").With(firstLines(statements)...).
			FixedBy(fix.Call("iam", "detach-role-policy",
				fix.P("--role-name", fix.RoleOf(ix.Evidence.Controller.Value.Role).OrPlaceholder("CONTROLLER_ROLE")),
				fix.P("--policy-arn", fix.Policy(arn))).With("or remove the Deny statement from the policy"))}
	}
	return []diagnosis.Finding{diagnosis.ReportBroken("", diagnosis.Certain,
		"a policy does not let the controller launch instances").With(firstLines(statements)...).
		FixedBy(fix.Call("sts", "decode-authorization-message", fix.P("--encoded-message", fix.Placeholder("MESSAGE"))).
			With("shows the statement that denies; the controller's policies are in deploy/iam"))}
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

// maxEventAge is the maximum age of an event about a deleted NodeClaim that recentStatements returns.
const maxEventAge = 2 * time.Minute

// recentStatements returns the statements of the controller's events about deleted NodeClaims. A statement must contain
// all substrings of at least one alternative. When EC2 refuses a launch, the controller deletes the NodeClaim at once
// and creates the next only some time later. Events before the launch of another instance are left out, because the
// launch shows that the problem is over. Because the UIDs of deleted NodeClaims are not known, findings from these
// statements are never certain.
func recentStatements(ix *index.Index, alternatives ...[]string) []index.Statement {
	var out []index.Statement
	for _, v := range ix.Evidence.Events.Value {
		_, exists := ix.FindClaim(v.Name)
		isOver := slices.ContainsFunc(ix.Evidence.Instances.Value, func(i diagnosis.Instance) bool { return i.Launched.After(v.Last) })
		if v.Kind != "NodeClaim" || !v.IsOfController() || exists || isOver || ix.Evidence.At.Sub(v.Last) > maxEventAge || v.Last.IsZero() {
			continue
		}
		text := strings.Join(strings.Fields(v.Reason+": "+v.Message), " ")
		lacks := func(sub string) bool { return !strings.Contains(text, sub) }
		if slices.ContainsFunc(alternatives, func(substrings []string) bool { return !slices.ContainsFunc(substrings, lacks) }) {
			out = append(out, index.Statement{Subject: "event on NodeClaim " + v.Name, Text: text})
		}
	}
	return out
}

// judgeQuota reports vCPU quotas that are used up. On-demand and spot instances have separate quotas.
func judgeQuota(ix *index.Index) []diagnosis.Finding {
	if gap, ok := statementsGap(ix); ok {
		return gap
	}
	const defaultQuota = 256 // vCPUs; requested if the present quota is not known for certain
	for _, q := range []struct {
		alternatives [][]string // see statementsWithAny
		kind         string
		code         fix.Value // of the quota
	}{
		{[][]string{{"MaxSpotInstanceCountExceeded"}, {"SpotQuotaExceeded"}}, "spot vCPUs", fix.Text("L-34B43A08")},
		{[][]string{{"VcpuLimitExceeded"}, {"VCPULimitExceeded"}, {"InstanceLimitExceeded"}}, "vCPUs", fix.Text("L-1216C47A")},
	} {
		statements, certainty := statementsWithAny(ix, q.alternatives...), diagnosis.Certain
		if len(statements) == 0 {
			statements, certainty = append(ix.ControllerStatements(q.alternatives...), recentStatements(ix, q.alternatives...)...), diagnosis.Likely
		}
		if len(statements) == 0 {
			continue
		}
		quota := defaultQuota
		if _, rest, ok := strings.Cut(statements[0].Text, "vCPU limit of "); ok {
			digits, _, _ := strings.Cut(rest, " ")
			if n, err := strconv.Atoi(digits); err == nil && certainty == diagnosis.Certain {
				quota = max(2*n, 64) // at least 64 vCPUs, because the quota of new accounts is small
			}
		}
		return []diagnosis.Finding{diagnosis.ReportBroken("", certainty, "the account's quota of %s is used up", q.kind).
			With(firstLines(statements)...).
			FixedBy(fix.Call("service-quotas", "request-service-quota-increase", ix.RegionParam(),
				fix.P("--service-code", fix.Text("ec2")), fix.P("--quota-code", q.code),
				fix.P("--desired-value", fix.Number(quota))))}
	}
	return nil
}

func judgeImageState(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Images.Gap("the images"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		subject, edit := "EC2NodeClass "+c.Name, fix.Edit(fix.NodeClass(c.Name))
		for _, i := range ix.Evidence.Images.Value {
			if (slices.Contains(c.Images, i.ID) || slices.Contains(c.ImageIDs, i.ID)) && i.State != "" && i.State != "available" {
				out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain,
					"its image %s is %s, and EC2 launches nothing from it", i.ID, i.State).With(ix.Evidence.Images.Source).
					FixedBy(nodeclass.AWSImageOr(c, edit.With("wait until the image is available, or select another image in spec.amiSelectorTerms"),
						func(s fix.Step) fix.Step { return s.With("AWS's own image; or wait until yours is available") })))
			}
		}
		for _, s := range statementsWithAny(ix, []string{"AWS Marketplace"}) {
			if s.Class != c.Name {
				continue
			}
			_, url, _ := strings.Cut(s.Text, "https://")
			url, _, _ = strings.Cut(url, " ")
			terms := "https://" + strings.TrimRight(url, ".,;)")
			if !strings.HasPrefix(terms, "https://aws.amazon.com/marketplace/") {
				terms = "https://aws.amazon.com/marketplace" // the URL in the statement may not come from AWS
			}
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain,
				"its image is a product of the AWS Marketplace, and the account has not subscribed to it").With(s.String()).
				FixedBy(nodeclass.AWSImageOr(c, edit.With("accept the terms at %s, or select another image in spec.amiSelectorTerms", terms),
					func(s fix.Step) fix.Step { return s.With("AWS's own image; or accept the terms at %s", terms) })))
			break
		}
	}
	return out
}
