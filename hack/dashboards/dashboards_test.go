package dashboards_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	dashboardFile = "../../deploy/dashboards/joiner.json"
	alertsFile    = "../../deploy/alerts/joiner.yaml"
)

// query is a PromQL expression of a panel or an alert.
type query struct {
	where, text string // where: title of the panel, or name of the alert
	legend      string // of the panel, with labels that the result must have: "{{nodepool}}"
	isAlert     bool   // the expression is an alert's
}

// dashboard has the fields of Grafana's dashboard model that the tests read.
type dashboard struct {
	Title, UID string
	Templating struct{ List []variable }
	Panels     []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr, LegendFormat, RefID string }
	}
}

type variable struct{ Name, Definition string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// rules is a file of Prometheus' alert rules.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func readRules(t *testing.T) rules {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// queries returns the expressions of all panels and alerts, with values for Grafana's variables.
func queries(t *testing.T) []query {
	t.Helper()
	var out []query
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			text := strings.NewReplacer("$job", ".*", "$cluster", ".*", "$__rate_interval", "5m").Replace(target.Expr)
			out = append(out, query{where: p.Title, text: text, legend: target.LegendFormat})
		}
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			out = append(out, query{where: r.Alert, text: r.Expr, isAlert: true})
		}
	}
	if len(out) < 40 {
		t.Fatalf("%d queries, want at least 40", len(out))
	}
	return out
}

// scrapeLabels are the labels that Prometheus adds to every series.
var scrapeLabels = []string{"cluster", "job", "instance", "namespace", "pod"}

// TestQueriesUseKnownMetrics checks that every expression is valid PromQL. Its metrics and labels must be those of
// package metrics and of the process, or labels that Prometheus adds.
func TestQueriesUseKnownMetrics(t *testing.T) {
	t.Parallel()
	known := knownLabels(t)
	for _, q := range queries(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
		if err != nil {
			t.Errorf("%s: %s: %v", q.where, q.text, err)
			continue
		}
		var inExpr []string // labels of the metrics of the expression
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			ofMetric, ok := known[s.Name]
			if !ok {
				t.Errorf("%s: no metric %s", q.where, s.Name)
				return nil
			}
			inExpr = append(inExpr, ofMetric...)
			for _, m := range s.LabelMatchers {
				isLabel := slices.Contains(ofMetric, m.Name) || slices.Contains(scrapeLabels, m.Name)
				if m.Name != labels.MetricName && !isLabel {
					t.Errorf("%s: %s has no label %s", q.where, s.Name, m.Name)
				}
			}
			return nil
		})
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if a, ok := n.(*parser.AggregateExpr); ok {
				for _, l := range a.Grouping {
					if !slices.Contains(inExpr, l) && !slices.Contains(scrapeLabels, l) {
						t.Errorf("%s: no metric in %s has the label %s", q.where, q.text, l)
					}
				}
			}
			return nil
		})
	}
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

// TestHealthyController runs every query on the metrics of a healthy controller: each panel has a result with the
// labels of its legend, and no alert fires.
func TestHealthyController(t *testing.T) {
	t.Parallel()
	c := newHealthyController(t)
	for _, q := range queries(t) {
		result := c.ask(t, q.text)
		switch {
		case q.isAlert && len(result) > 0:
			t.Errorf("%s fires for a healthy controller: %v", q.where, result)
		case q.isAlert:
		case len(result) == 0:
			t.Errorf("%s has no result: %s", q.where, q.text)
		default:
			for _, m := range legendLabel.FindAllStringSubmatch(q.legend, -1) {
				if result[0].Metric.Get(m[1]) == "" {
					t.Errorf("%s: the result of %s has no label %s for its legend: %v", q.where, q.text, m[1], result[0].Metric)
				}
			}
		}
	}
}

// TestAlertsFire checks that each alert fires for a controller with the alert's problem, and that the alert's
// annotations can be rendered with the result.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	c := newFailingController(t)
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if r.Alert == "JoinerIsAbsent" {
				if got := newAbsent().ask(t, r.Expr); len(got) != 1 {
					t.Errorf("%s has %v when nothing is scraped, want one alert", r.Alert, got)
				}
				continue
			}
			got := c.ask(t, r.Expr)
			if len(got) == 0 {
				t.Errorf("%s does not fire: %s", r.Alert, r.Expr)
				continue
			}
			checkAnnotations(t, r.Alert, r.Annotations, got[0])
		}
	}
}

// checkAnnotations renders the annotations of an alert as Prometheus does.
func checkAnnotations(t *testing.T, alert string, annotations map[string]string, s promql.Sample) {
	t.Helper()
	data := struct {
		Labels map[string]string
		Value  float64
	}{s.Metric.Map(), s.F}
	// The format of the number does not matter here.
	humanize := func(f float64) string { return time.Duration(f * float64(time.Second)).String() }
	for name, text := range annotations {
		var b strings.Builder
		tmpl, err := template.New(alert).Option("missingkey=error").
			Funcs(template.FuncMap{"humanizeDuration": humanize, "humanizePercentage": humanize}).
			Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
		if err == nil {
			err = tmpl.Execute(&b, data)
		}
		if err != nil {
			t.Errorf("%s: annotation %s: %v", alert, name, err)
		}
		if b.Len() == 0 {
			t.Errorf("%s: annotation %s is empty", alert, name)
		}
	}
}

// TestRulesAreComplete checks that alerts have unique names, and all required annotations and labels.
func TestRulesAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Joiner") {
				t.Errorf("%s: the name is used twice, or lacks the prefix Joiner", r.Alert)
			}
			seen[r.Alert] = true
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("%s: severity %q, want critical or warning", r.Alert, s)
			}
			if r.For != "" {
				if _, err := time.ParseDuration(r.For); err != nil {
					t.Errorf("%s: for: %v", r.Alert, err)
				}
			}
			if !strings.HasSuffix(r.Annotations["summary"], ".") || r.Annotations["description"] == "" {
				t.Errorf("%s: summary %q, description %q; want both, the summary with a full stop",
					r.Alert, r.Annotations["summary"], r.Annotations["description"])
			}
		}
	}
}

// TestRunbook checks that each alert links to its own section of the runbook, that this section has the alert's
// meaning, diagnosis and fix, and that no section is without an alert.
func TestRunbook(t *testing.T) {
	t.Parallel()
	const page, address = "../../docs/runbook.md", "https://github.com/joiner-sh/joiner/blob/main/docs/runbook.md#"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		sections[title] = body
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if want := address + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s: runbook_url %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
			}
			body, ok := sections[r.Alert]
			delete(sections, r.Alert)
			if !ok {
				t.Errorf("%s has no section %s", page, r.Alert)
				continue
			}
			const minText = 20 // bytes after the heading
			for _, part := range []string{"**Meaning.**", "**Look at.**", "**Do.**"} {
				if _, after, ok := strings.Cut(body, part); !ok || len(strings.TrimSpace(after)) < minText {
					t.Errorf("%s: the section %s lacks %s", page, r.Alert, part)
				}
			}
		}
	}
	for title := range sections {
		t.Errorf("%s has a section %s without an alert", page, title)
	}
}

// TestDashboardMetrics checks that the dashboard shows the most important metrics, and that all its queries can be
// limited to one cluster.
func TestDashboardMetrics(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	var all strings.Builder
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all.WriteString(target.Expr + "\n")
			for _, selector := range regexp.MustCompile(`\{[^{}]*=[^{}]*\}`).FindAllString(target.Expr, -1) {
				if !strings.Contains(selector, `cluster=~"$cluster"`) || !strings.Contains(selector, `job=~"$job"`) {
					t.Errorf("%s: %s is not limited to $cluster and $job", p.Title, selector)
				}
			}
		}
	}
	for _, part := range []string{
		"joiner_join_failures_total", "joiner_drifted_nodeclaims", "joiner_drift_held", "joiner_disruption_deadlocks", `capacity_type="spot"`,
	} {
		if !strings.Contains(all.String(), part) {
			t.Errorf("no panel has a query with %s", part)
		}
	}
	for _, name := range []string{"datasource", "cluster", "job"} {
		if !slices.ContainsFunc(d.Templating.List, func(v variable) bool { return v.Name == name }) {
			t.Errorf("the dashboard has no variable %s", name)
		}
	}
}

// TestDashboardLayout checks that panels have titles and unique ids, and do not overlap, and that all rows exist.
func TestDashboardLayout(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.Title != "Joiner" || d.UID != "joiner" {
		t.Errorf("title %q, uid %q; want Joiner and joiner", d.Title, d.UID)
	}
	occupied, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: the id is used twice, or the panel has no title or no query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := occupied[[2]int{x, y}]; other != "" || x >= 24 { // Grafana has 24 columns
					t.Errorf("panel %q overlaps panel %q, or is outside the dashboard", p.Title, other)
				}
				occupied[[2]int{x, y}] = p.Title
			}
		}
	}
	for _, want := range []string{"Fleet", "Price", "Joins", "Drift and disruption", "Shortages", "API rate limit"} {
		if !slices.ContainsFunc(d.Panels, func(p struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, LegendFormat, RefID string }
		}) bool {
			return p.Type == "row" && p.Title == want
		}) {
			t.Errorf("the dashboard has no row %q", want)
		}
	}
}
