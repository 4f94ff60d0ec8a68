package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/joiner-sh/joiner/internal/permissions"
)

// ControllerAccount is the name of the service account, in kube-system, with which RunController runs the controller.
// The names of the account's roles begin with it. The Helm chart has its own service account and roles.
const ControllerAccount = "lab-controller"

func serviceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// allowController creates the controller's service account with exactly the permissions of package permissions, and
// writes its kubeconfig.
func (s *ServiceAccounts) allowController(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: ControllerAccount, Namespace: metav1.NamespaceSystem}}
	if _, err := s.lab.Kube.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the controller's service account: %w", err)
	}
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
	api := s.lab.Kube.RbacV1()
	meta := metav1.ObjectMeta{Name: ControllerAccount}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ControllerAccount}
	if _, err := api.ClusterRoles().Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: policyRules(permissions.Cluster)}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the controller's ClusterRole: %w", err)
	}
	if _, err := api.ClusterRoleBindings().Create(ctx,
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subject}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind the controller's ClusterRole: %w", err)
	}
	// In a lab, Own (the controller's namespace) and System are both kube-system.
	for _, where := range []permissions.RuleScope{permissions.Own, permissions.System} {
		meta := metav1.ObjectMeta{Name: ControllerAccount + "-" + string(where), Namespace: metav1.NamespaceSystem}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		if _, err := api.Roles(meta.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: policyRules(where)},
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make the controller's role %s: %w", meta.Name, err)
		}
		if _, err := api.RoleBindings(meta.Namespace).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subject}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("bind the controller's role %s: %w", meta.Name, err)
		}
	}
	var err error
	s.controllerConfig, err = s.Kubeconfig(ctx, account.Namespace, account.Name)
	return err
}

func policyRules(where permissions.RuleScope) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range permissions.RulesIn(where) {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: r.Resources, ResourceNames: r.Names, Verbs: r.Verbs})
	}
	return out
}

// Kubeconfig writes a kubeconfig for a service account, with a token like those of its pods, and returns the path.
func (s *ServiceAccounts) Kubeconfig(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := s.lab.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a token of service account %s/%s: %w", namespace, name, err)
	}
	path := filepath.Join(s.lab.Home, namespace+"-"+name+".kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: s.lab.plane.URL, CertificateAuthorityData: s.lab.plane.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"lab": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "lab", Namespace: namespace}},
		CurrentContext: "lab",
	}, path)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig of service account %s/%s: %w", namespace, name, err)
	}
	return path, nil
}

// APIRequest is one kind of request that a service account sent to the API server.
type APIRequest struct {
	permissions.Request
	Namespace string // empty: cluster-scoped, or all namespaces
	Refused   bool   // denied by RBAC
	// Listed is true if package permissions allows the request. If a listed request is refused, the API server is still
	// starting, or a role is not bound yet.
	Listed bool
}

// decisionAnnotation is the audit annotation with the decision of the authorizer. A response 403 alone does not prove a
// missing permission: creating anything, evictions included, in a namespace that is being deleted also returns 403.
const decisionAnnotation = "authorization.k8s.io/decision"

// Requests returns each kind of request that the service account sent, with its count, from the audit log.
func (s *ServiceAccounts) Requests(namespace, account string) (map[APIRequest]int, error) {
	data, err := os.ReadFile(s.lab.plane.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	out := map[APIRequest]int{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef *struct {
				APIGroup, Resource, Subresource, Namespace, Name string
			}
			Annotations map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line is still being written
		}
		if event.ObjectRef == nil || event.User.Username != serviceAccountUser(namespace, account) {
			continue // a request of another user, or a discovery request, which needs no permission
		}
		o := event.ObjectRef
		request := APIRequest{Namespace: o.Namespace, Refused: event.Annotations[decisionAnnotation] == "forbid"}
		request.Request = permissions.Request{
			Verb:     event.Verb,
			Group:    o.APIGroup,
			Resource: strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"),
			Name:     o.Name,
			Where:    permissions.Cluster,
		}
		out[request.kind(namespace)]++
	}
	return out, lines.Err()
}

// kind returns the request without its namespace, so that requests that one RBAC rule allows are equal. It also drops
// the object's name, unless the rule lists names. A request that no rule allows is returned unchanged. accountNamespace
// is the namespace of the service account.
func (a APIRequest) kind(accountNamespace string) APIRequest {
	for _, r := range permissions.Rules() {
		for _, where := range []permissions.RuleScope{permissions.Cluster, permissions.Own, permissions.System} {
			applies := where == permissions.Cluster || where == permissions.Own && a.Namespace == accountNamespace ||
				where == permissions.System && a.Namespace == metav1.NamespaceSystem
			q := a.Request
			q.Where = where
			if applies && r.Allows(q) {
				if len(r.Names) == 0 {
					q.Name = ""
				}
				return APIRequest{Request: q, Refused: a.Refused, Listed: true}
			}
		}
	}
	return a
}
