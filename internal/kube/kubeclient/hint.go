package kubeclient

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Hint returns how a user can fix an error of a call to the API server; empty if the error itself says enough.
func Hint(err error) string {
	if err == nil {
		return ""
	}
	for _, hint := range []func(error) string{responseHint, credentialsHint, certificateHint, proxyHint, networkHint} {
		if text := hint(err); text != "" {
			return text
		}
	}
	return ""
}

func responseHint(err error) string {
	text := err.Error()
	switch {
	case meta.IsNoMatchError(err):
		return "install the definitions of the API: joiner crds apply"
	case strings.Contains(text, "invalid character '<'"), strings.Contains(strings.ToLower(text), "<html"),
		strings.Contains(text, "text/html"):
		return "the answer is HTML, so the server is not an API server but perhaps a proxy or a login page." +
			" Check the server's address in the kubeconfig, HTTPS_PROXY and NO_PROXY"
	case apierrors.IsForbidden(err) && serverMessage(err) == "":
		return "API servers give a reason with 403 Forbidden, and this answer has none: it may come from a proxy." +
			" Check the server's address in the kubeconfig, HTTPS_PROXY and NO_PROXY"
	case apierrors.IsNotFound(err) && strings.Contains(text, "server groups"):
		return "every API server has these, so the server is not an API server: check its address in the kubeconfig"
	case apierrors.IsInternalError(err) && strings.Contains(text, "webhook"): // the API server works, but a webhook that it calls does not
		return "the webhook named in the error does not answer: fix it, or remove it from its webhook configuration or from spec.conversion of the CustomResourceDefinition"
	case apierrors.IsInternalError(err):
		return "the API server, or a proxy in front of it, has an internal problem: kubectl get --raw /readyz shows details"
	case IsUndiscovered(err):
		return "403 Forbidden: this user is not allowed to list the kinds of objects; bind it to the ClusterRole system:discovery, as" +
			" API servers do by default for authenticated users, or look for a proxy in between"
	case apierrors.IsForbidden(err):
		// The error names the rejected user: the controller's service account, or the user of joiner plan.
		return "give this user that permission; the chart's ClusterRole lists all permissions of the controller," +
			" of which joiner plan needs only list"
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept these credentials: renew them (aws sso login, or aws eks update-kubeconfig --name CLUSTER)," +
			" register this identity in EKS (aws eks create-access-entry), or choose another kubeconfig or context"
	}
	return ""
}

// credentialsHint explains a failure of the credentials program in a kubeconfig.
func credentialsHint(err error) string {
	_, problem, ok := strings.Cut(err.Error(), "getting credentials: ")
	switch {
	case !ok:
		return ""
	case strings.Contains(problem, "not found"), strings.Contains(problem, "no such file"):
		return "install the program, or put its folder into PATH; the kubeconfig's user names it under exec.command"
	}
	return "run the program that the kubeconfig's user names under exec, and see what it reports"
}

func certificateHint(err error) string {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return ""
	}
	return "the server's certificate was not issued by the kubeconfig's certificate-authority-data (or certificate-authority), or is not" +
		" valid for the server's address; a proxy that decrypts TLS presents its own certificate"
}

func proxyHint(err error) string {
	var proxy *net.OpError
	if !errors.As(err, &proxy) || proxy.Op != "proxyconnect" {
		return ""
	}
	name := "the proxy"
	var dial *net.OpError
	var unknown *net.DNSError
	switch {
	case errors.As(proxy.Err, &unknown):
		name += " " + unknown.Name
	case errors.As(proxy.Err, &dial) && dial.Addr != nil:
		name += " " + dial.Addr.String()
	}
	return name + " cannot be reached: correct HTTPS_PROXY (or proxy-url in the kubeconfig), or name the API server in NO_PROXY"
}

func networkHint(err error) string {
	var network net.Error
	if !errors.As(err, &network) {
		return ""
	}
	return "check that the API server's address in the kubeconfig is right and can be reached from here"
}
