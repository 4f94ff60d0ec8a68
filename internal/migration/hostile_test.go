package migration_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	. "github.com/joiner-sh/joiner/internal/migration"
)

// marker is part of every hostile text.
const marker = "pwn3d"

func hostileTexts() []string {
	return []string{
		"x;touch " + marker + ";#",
		"$(touch " + marker + ")",
		"`touch " + marker + "`",
		"x' '" + marker + "'; touch '" + marker,
		"x\ntouch " + marker + "\n",
		"x && touch " + marker + " || true | tee > /tmp/" + marker,
		"--kubeconfig=/tmp/" + marker,
		"x --all " + marker,
		"x,Value=owned Key=" + marker,
		"\x1b[2J\x1b]0;" + marker + "\x07\u202e" + marker,
	}
}

// visitTexts calls use for each string in v and for each key of a map, but not for the values of maps. path is where
// the string is. set replaces the string.
func visitTexts(v reflect.Value, path string, use func(path, text string, set func(string))) {
	switch v.Kind() {
	case reflect.String:
		use(path, v.String(), v.SetString)
	case reflect.Slice:
		for i := range v.Len() {
			visitTexts(v.Index(i), fmt.Sprintf("%s[%d]", path, i), use)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				visitTexts(v.Field(i), path+"."+f.Name, use)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			current := key
			use(path+"{"+key.String()+"}", key.String(), func(text string) {
				value := v.MapIndex(current)
				v.SetMapIndex(current, reflect.Value{})
				current = reflect.ValueOf(text).Convert(v.Type().Key())
				v.SetMapIndex(current, value)
			})
		}
	default:
	}
}

// troubledInstallations returns installations by name. Together they have findings of every check.
func troubledInstallations() map[string]Installation {
	out := map[string]Installation{"healthy": healthy()}
	change := func(name string, f func(*Installation)) {
		in := healthy()
		f(&in)
		out[name] = in
	}
	change("controllers", func(in *Installation) {
		in.Controllers[0].Lease, in.Controllers[0].Version, in.Controllers[0].Problem = "", "0.1.2", "BATCH is wrong"
		in.Controllers = append(in.Controllers, Controller{Product: Joiner, Namespace: "joiner", Name: "joiner", Replicas: 2, Lease: "joiner/x"})
	})
	change("values", func(in *Installation) {
		in.Values = map[string]string{"controller.image.tag": "1", "fullnameOverride": "karpenter"}
		in.UnknownValues = []UnknownValue{{Path: "controller.resource", Near: "controller.resources"}, {Path: "flavour"}}
	})
	change("objects", func(in *Installation) {
		in.Pools[0].Refused, in.Classes[0].Unknown, in.Classes[0].NotReady = []string{"spec.weight: 200"}, []string{"spec.new"}, "no subnets"
		in.Definitions[0].Held, in.Nodes[0].Disrupted = true, true
	})
	change("claims", func(in *Installation) {
		in.Claims = append(in.Claims, Claim{Name: "launching", Pool: "apps"},
			Claim{Name: "foreign", Pool: "apps", UID: "uid-2", ProviderID: "aws:///a/i-5"},
			Claim{Name: "drifted", Pool: "apps", Drifted: "NodePoolDrifted", ProviderID: "aws:///a/i-6"},
			Claim{Name: "stale", Pool: "apps", PoolHash: "7", PoolHashVersion: "v3", ProviderID: "aws:///a/i-7"})
	})
	for _, owner := range []Owner{Untagged, OtherOwner, SameName} {
		change("instance "+string(owner), func(in *Installation) { in.Instances[0].Owner = owner })
		change("lone instance "+string(owner), func(in *Installation) { in.Instances = append(in.Instances, Instance{ID: "i-2", Owner: owner}) })
	}
	change("lone instance", func(in *Installation) { in.Instances = append(in.Instances, Instance{ID: "i-2", Owner: Legacy}) })
	change("permissions", func(in *Installation) {
		in.Permissions[0].Allowed = false
		in.Permissions = append(in.Permissions, Permission{Statement: "Shift", Policy: "reading", Action: "a:B", Optional: true})
	})
	change("unseen", func(in *Installation) { in.Unseen = []Unseen{{What: "EC2", Why: "no credentials"}} })
	return out
}

// TestHostileInstallation replaces every string of an installation by hostile text, or appends hostile text to the
// string. Every printed fix and step is still one harmless command, or a sentence or comment.
func TestHostileInstallation(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for name, in := range troubledInstallations() {
		for _, f := range Check(in).Findings {
			found[f.Check] = true
		}
		visitTexts(reflect.ValueOf(&in).Elem(), "", func(path, text string, set func(string)) {
			for _, hostile := range hostileTexts() {
				for _, replaced := range []string{hostile, text + hostile} {
					set(replaced)
					r := Check(in)
					for _, f := range r.Findings {
						if why := lineProblem(f.Fix); why != "" {
							t.Errorf("%s, %s = %q: the fix of %s %s:\n%s", name, path, replaced, f.Check, why, f.Fix)
						}
					}
					for _, step := range slices.Concat(r.Steps.Over, r.Steps.Check, r.Steps.Back) {
						if why := lineProblem(step); why != "" {
							t.Errorf("%s, %s = %q: a step %s:\n%s", name, path, replaced, why, step)
						}
					}
				}
			}
			set(text)
		})
	}
	for _, name := range CheckNames() {
		if !found[name] {
			t.Errorf("no installation has a finding of %s", name)
		}
	}
}

// lineProblem returns what is wrong with a line that users paste into a shell; empty: nothing is wrong.
func lineProblem(line string) string {
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "has characters that a terminal acts on, or a second line"
	}
	_, command, _ := strings.Cut(line, ": ") // of a line "introduction: command"
	hasCommand := false
	for _, text := range []string{line, command} {
		program, _, _ := strings.Cut(text, " ")
		if !slices.Contains([]string{"#", "kubectl", "aws", "helm", "joiner"}, program) || strings.Contains(text, "…") {
			continue // a sentence
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		switch {
		case err != nil:
			return "is not valid shell: " + err.Error()
		case program == "#" && len(file.Stmts) > 0, program != "#" && len(file.Stmts) != 1: // a comment has no command
			return fmt.Sprintf("has %d commands", len(file.Stmts))
		}
		hasCommand = hasCommand || program != "#"
		for _, s := range file.Stmts {
			if _, isCall := s.Cmd.(*syntax.CallExpr); !isCall || s.Background {
				return "is not one command"
			}
		}
	}
	harmful := []string{"$(touch", "`touch", ";touch", "&& touch", "'" + marker} // must not be in any line
	if hasCommand {
		// These are harmless in a sentence.
		harmful = append(harmful, "--kubeconfig=", "--all "+marker, "Key="+marker)
	}
	for _, text := range harmful {
		if strings.Contains(line, text) {
			return "has " + text
		}
	}
	return ""
}
