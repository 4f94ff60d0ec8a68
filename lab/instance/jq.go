package instance

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
)

// jq emulates the part of jq that user data uses to change the kubelet's configuration: assignments to paths,
// ".a.b=VALUE | .c=VALUE", and the filter ".", which changes nothing. It prints the resulting document, and returns the
// exit code.
func jq(f *files, args []string, in io.Reader, out, errs io.Writer) int {
	var operands []string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			operands = append(operands, arg)
		}
	}
	if len(operands) == 0 || len(operands) > 2 {
		fmt.Fprintln(errs, "Usage: jq [OPTIONS] FILTER [FILE]")
		return 2
	}
	if len(operands) == 2 {
		data, ok := f.read(path.Clean(operands[1]))
		if !ok {
			fmt.Fprintf(errs, "jq: error: Could not open file %s: No such file or directory\n", operands[1])
			return 2
		}
		in = strings.NewReader(string(data))
	}
	var document any
	if in == nil {
		return 0
	}
	if err := json.NewDecoder(io.LimitReader(in, maxFile)).Decode(&document); err != nil {
		if err == io.EOF {
			return 0 // an empty input results in an empty output
		}
		fmt.Fprintf(errs, "parse error: %v\n", err)
		return 2
	}
	for step := range strings.SplitSeq(operands[0], "|") {
		if problem := assign(&document, strings.TrimSpace(step)); problem != "" {
			fmt.Fprintf(errs, "jq: error: %s\n", problem)
			return 5
		}
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		fmt.Fprintf(errs, "jq: error: %v\n", err)
		return 5
	}
	fmt.Fprintf(out, "%s\n", text)
	return 0
}

// assign applies one step of a filter to the document. problem is the error message; empty: none.
func assign(document *any, step string) (problem string) {
	if step == "." {
		return ""
	}
	left, right, ok := strings.Cut(step, "=")
	left, isPath := strings.CutPrefix(strings.TrimSpace(left), ".")
	var value any
	if !ok || !isPath || json.Unmarshal([]byte(right), &value) != nil {
		return "the lab supports only filters .a.b=VALUE, not " + step
	}
	keys := strings.Split(left, ".")
	table, ok := (*document).(map[string]any)
	for i, key := range keys {
		if !ok {
			return fmt.Sprintf("Cannot index that with %q", key)
		}
		if i == len(keys)-1 {
			table[key] = value
			break
		}
		if table[key] == nil {
			table[key] = map[string]any{}
		}
		table, ok = table[key].(map[string]any)
	}
	return ""
}
