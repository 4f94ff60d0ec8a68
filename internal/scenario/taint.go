package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// appendTaint reads KEY=VALUE:EFFECT or KEY:EFFECT.
func appendTaint(to *[]requirements.Taint, args []string) error {
	if len(args) != 1 {
		return errors.New("want KEY=VALUE:EFFECT")
	}
	i := strings.LastIndexByte(args[0], ':')
	if i < 0 {
		return fmt.Errorf("%q is not KEY=VALUE:EFFECT", args[0])
	}
	t := requirements.Taint{Effect: requirements.Effect(args[0][i+1:])}
	t.Key, t.Value, _ = strings.Cut(args[0][:i], "=")
	*to = append(*to, t)
	return nil
}

// appendToleration reads KEY=VALUE, KEY<VALUE, KEY>VALUE, KEY or *, each optionally followed by :EFFECT.
func appendToleration(to *[]requirements.Toleration, args []string) error {
	if len(args) != 1 {
		return errors.New("want KEY=VALUE:EFFECT, KEY:EFFECT, KEY or *")
	}
	text, t := args[0], requirements.Toleration{Operator: "Exists"}
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		text, t.Effect = text[:i], requirements.Effect(text[i+1:])
	}
	if text == "*" {
		text = ""
	}
	t.Key = text
	if i := strings.IndexAny(text, "=<>"); i >= 0 {
		t.Key, t.Value = text[:i], text[i+1:]
		t.Operator = map[byte]string{'=': "Equal", '<': "Lt", '>': "Gt"}[text[i]]
	}
	*to = append(*to, t)
	return nil
}

// tolerationText is the inverse of appendToleration. An empty operator means Equal, as in Kubernetes.
func tolerationText(t requirements.Toleration) string {
	sign, ok := map[string]string{"": "=", "Equal": "=", "Lt": "<", "Gt": ">"}[t.Operator]
	out := t.Key
	switch {
	case ok:
		out += sign + t.Value
	case out == "":
		out = "*"
	}
	if t.Effect != "" {
		out += ":" + string(t.Effect)
	}
	return out
}

// appendPort reads PORT/PROTOCOL, optionally after an address: 10.0.0.1:80/TCP.
func appendPort(to *[]cluster.HostPort, args []string) error {
	if len(args) != 1 {
		return errors.New("want PORT/PROTOCOL")
	}
	port, protocol, ok := strings.Cut(args[0], "/")
	h := cluster.HostPort{IP: "0.0.0.0", Protocol: protocol}
	if i := strings.LastIndexByte(port, ':'); i >= 0 {
		h.IP, port = port[:i], port[i+1:]
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil || !ok {
		return fmt.Errorf("%q is not PORT/PROTOCOL", args[0])
	}
	h.Port = int32(n)
	*to = append(*to, h)
	return nil
}

func portText(h cluster.HostPort) string {
	text := fmt.Sprintf("%d/%s", h.Port, h.Protocol)
	if h.IP != "" && h.IP != "0.0.0.0" {
		text = h.IP + ":" + text
	}
	return text
}
