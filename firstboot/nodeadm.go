package firstboot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	"sigs.k8s.io/yaml"
)

// nodeConfigKind is the content type by which nodeadm knows its own parts.
const nodeConfigKind = "application/node.eks.aws"

// part is one piece of a MIME message.
type part struct{ kind, body string }

// parts takes a MIME message apart.
func parts(text string) ([]part, error) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the user data is no MIME message: %w", err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("the user data is no MIME message: %w", err)
	}
	var out []part
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, wrongPart(len(out)+1, err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, wrongPart(len(out)+1, err)
		}
		kind, _, _ := strings.Cut(p.Header.Get("Content-Type"), ";")
		out = append(out, part{strings.ToLower(strings.TrimSpace(kind)), string(body)})
	}
}

// nodeadm merges the NodeConfigs in their order, a later one winning.
// Source: the API reference of nodeadm, github.com/awslabs/amazon-eks-ami.
func nodeadm(text string) (Kubelet, error) {
	all, err := parts(text)
	if err != nil {
		return Kubelet{}, err
	}
	merged := map[string]any{}
	for i, p := range all {
		if p.kind != nodeConfigKind {
			continue
		}
		one, err := readNodeConfig(p.body)
		if err != nil {
			return Kubelet{}, wrongPart(i+1, err)
		}
		mergeInto(merged, one)
	}
	if len(merged) == 0 {
		return Kubelet{}, errors.New("the user data has no NodeConfig")
	}
	var config struct {
		Spec struct {
			Kubelet struct {
				Config map[string]any
				Flags  []string
			}
		}
	}
	data, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return Kubelet{}, fmt.Errorf("spec.userData: read the merged NodeConfig: %w", err)
	}
	k := Kubelet{Config: config.Spec.Kubelet.Config}
	for _, flag := range config.Spec.Kubelet.Flags {
		k.Flags = append(k.Flags, words(flag)...)
	}
	return k, nil
}

// readNodeConfig reads one part. What has another shape than nodeadm's own types
// is found here, where it is known which part it is.
func readNodeConfig(body string) (map[string]any, error) {
	var shape struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			Cluster  map[string]any `json:"cluster"`
			Instance map[string]any `json:"instance"`
			Kubelet  struct {
				Config map[string]any `json:"config"`
				Flags  []string       `json:"flags"`
			} `json:"kubelet"`
			FeatureGates map[string]bool `json:"featureGates"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(body), &shape); err != nil {
		return nil, fmt.Errorf("is no NodeConfig: %w", err)
	}
	if shape.Kind != "NodeConfig" || !strings.HasPrefix(shape.APIVersion, "node.eks.aws/") {
		return nil, fmt.Errorf("is no NodeConfig: it has kind %q and apiVersion %q, want NodeConfig of node.eks.aws/v1alpha1", shape.Kind, shape.APIVersion)
	}
	var out map[string]any
	if err := yaml.Unmarshal([]byte(body), &out); err != nil {
		return nil, fmt.Errorf("is no NodeConfig: %w", err)
	}
	return out, nil
}

// mergeInto merges tables key by key. Flags add up, other lists replace each other.
func mergeInto(to, from map[string]any) {
	for key, value := range from {
		switch v := value.(type) {
		case map[string]any:
			if old, ok := to[key].(map[string]any); ok {
				mergeInto(old, v)
				continue
			}
		case []any:
			if old, ok := to[key].([]any); ok && key == "flags" {
				to[key] = append(old, v...)
				continue
			}
		}
		to[key] = value
	}
}
