package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Parse reads a scenario. The error begins with "line N:".
func Parse(text string) (Scenario, error) {
	input, expect, _ := strings.Cut("\n"+text, "\n----\n") // the added \n finds a "----" in the first line
	p := parser{out: Scenario{Expect: expect, Market: catalog.Market{}}}
	for n, line := range strings.Split(strings.TrimPrefix(input, "\n"), "\n") {
		if err := p.readLine(line); err != nil {
			return Scenario{}, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	p.expandPods()
	shareKinds(p.out.Snapshot.Nodes)
	return p.out, nil
}

type parser struct {
	out     Scenario
	section string // first word of the current section's header
	class   string // node class of the current catalog section
	pods    []podsEntry
}

// podsEntry is one entry of the pods section.
type podsEntry struct {
	pod   cluster.Pod
	times int // number of pods; 0 means one pod, whose name gets no number
}

// errOutside is the error about an entry before the first header, or in a section that has no entries.
var errOutside = errors.New("the line is outside of any section: want catalog, pools, nodes, daemons, pods or solve, without indentation")

// readLine reads one line. A line without indentation is the header of a section. A line that is indented by one or two
// blanks begins an entry. A line that is indented further is a detail of the entry above it.
func (p *parser) readLine(line string) error {
	text := strings.TrimSpace(line)
	indentation := len(line) - len(strings.TrimLeft(line, " "))
	words := strings.Fields(text)
	switch {
	case text == "":
		return nil
	case text[0] == '#':
		if p.section == "" {
			p.out.Story += strings.TrimPrefix(strings.TrimPrefix(text, "#"), " ") + "\n"
		}
		return nil
	case indentation == 0:
		return p.readHeader(words)
	case indentation <= 2:
		return p.readEntry(words)
	}
	return p.readDetail(words[0], words[1:], strings.TrimSpace(strings.TrimPrefix(text, words[0])))
}

func (p *parser) readHeader(words []string) error {
	p.section = words[0]
	rest := words[1:]
	switch p.section {
	case "catalog":
		p.class = defaultClass
		if len(rest) == 1 {
			p.class, rest = rest[0], nil
		}
		if _, ok := p.out.Market[p.class]; !ok {
			p.out.Market[p.class] = catalog.Catalog{}
		}
	case "solve":
		if len(rest) == 1 {
			effort, err := strconv.Atoi(strings.TrimPrefix(rest[0], "effort="))
			if err != nil {
				return fmt.Errorf("want solve effort=STEPS: %w", err)
			}
			p.out.Effort, rest = packing.Effort(effort), nil
		}
	case "pools", "nodes", "daemons", "pods":
	default:
		return fmt.Errorf("unknown section %q: want catalog, pools, nodes, daemons, pods or solve", p.section)
	}
	if len(rest) > 0 {
		return fmt.Errorf("section %s: unexpected %q", p.section, rest)
	}
	return nil
}

// readEntry reads the first line of an entry: a type, pool, node, daemon or pod.
func (p *parser) readEntry(words []string) error {
	s := &p.out.Snapshot
	switch p.section {
	case "catalog":
		return p.readOfferings(words)
	case "pools":
		pool, err := parsePool(words)
		s.Pools = append(s.Pools, pool)
		return err
	case "nodes":
		node, err := parseNode(words)
		s.Nodes = append(s.Nodes, node)
		return err
	case "daemons":
		daemon, err := parseDaemon(words)
		s.Daemons = append(s.Daemons, daemon)
		return err
	case "pods":
		pod, times, err := parsePod(words)
		p.pods = append(p.pods, podsEntry{pod: pod, times: times})
		return err
	}
	return errOutside
}

// readDetail reads a line that belongs to the entry above it. For the parameters, see readPoolDetail.
func (p *parser) readDetail(word string, args []string, rest string) error {
	s := &p.out.Snapshot
	switch {
	case p.section == "pools" && len(s.Pools) > 0:
		return readPoolDetail(&s.Pools[len(s.Pools)-1], word, args, rest)
	case p.section == "nodes" && len(s.Nodes) > 0:
		return readNodeDetail(&s.Nodes[len(s.Nodes)-1], word, args, rest)
	case p.section == "daemons" && len(s.Daemons) > 0:
		return readDaemonDetail(&s.Daemons[len(s.Daemons)-1], word, args, rest)
	case p.section == "pods" && len(p.pods) > 0:
		return readPodDetail(&p.pods[len(p.pods)-1].pod, word, args, rest)
	}
	return fmt.Errorf("%q has no entry above it", word)
}

// expandPods expands the entries to pods: "web x3" becomes web-1, web-2 and web-3.
func (p *parser) expandPods() {
	for _, e := range p.pods {
		if e.times == 0 {
			p.out.Snapshot.Pods = append(p.out.Snapshot.Pods, e.pod)
			continue
		}
		for n := range e.times {
			pod := e.pod
			pod.Name = fmt.Sprintf("%s-%d", e.pod.Name, n+1)
			p.out.Snapshot.Pods = append(p.out.Snapshot.Pods, pod)
		}
	}
}
