package kubeclient

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Hint returns what a user can do about an error for which WhatNext returns Tell or Retry; empty if the error itself is enough.
func Hint(err error) string {
	if err == nil {
		return ""
	}
	for _, hint := range []func(error) string{answerHint, credentialsHint, certificateHint, proxyHint, pathHint} {
		if text := hint(err); text != "" {
			return text
		}
	}
	return ""
}

// answerHint is about what a server has answered.
func answerHint(err error) string {
	text := err.Error()
	switch {
	case meta.IsNoMatchError(err):
		return "install the definitions of the API: joiner crds apply"
	case strings.Contains(text, "invalid character '<'"), strings.Contains(strings.ToLower(text), "<html"),
		strings.Contains(text, "text/html"):
		return "the answer is HTML, so that is no API server: is it a proxy, or a page to log in?" +
			" Check the server's address in the kubeconfig, HTTPS_PROXY and NO_PROXY"
	case apierrors.IsForbidden(err) && said(err) == "":
		return "403 Forbidden without a reason, which API servers always give: is there a proxy in between?" +
			" Check the server's address in the kubeconfig, HTTPS_PROXY and NO_PROXY"
	case apierrors.IsNotFound(err) && strings.Contains(text, "server groups"):
		return "every API server has these, so that is none: check the server's address in the kubeconfig"
	case apierrors.IsInternalError(err) && strings.Contains(text, "webhook"): // the API server is well, and asks another that is not
		return "the webhook named there does not answer: mend it, or take it out of its configuration, or of spec.conversion of the CustomResourceDefinition"
	case apierrors.IsInternalError(err):
		return "the API server, or what answers in its place, has a problem of its own: kubectl get --raw /readyz says more of it"
	case IsUndiscovered(err):
		return "403 Forbidden: this user may not ask which kinds of objects there are; bind it to the ClusterRole system:discovery, as" +
			" API servers do with everybody whom they know, or look for a proxy in between"
	case apierrors.IsForbidden(err):
		// The error names the rejected user: the controller's service account, or the user of joiner plan.
		return "give this user that permission; the chart's ClusterRole lists all that the controller needs," +
			" of which joiner plan needs list alone"
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept these credentials: renew them (aws sso login, or aws eks update-kubeconfig --name CLUSTER)," +
			" let EKS know this identity (aws eks create-access-entry), or choose another kubeconfig or context"
	}
	return ""
}

// credentialsHint is about the program that a kubeconfig names for credentials.
func credentialsHint(err error) string {
	_, problem, ok := strings.Cut(err.Error(), "getting credentials: ")
	switch {
	case !ok:
		return ""
	case strings.Contains(problem, "not found"), strings.Contains(problem, "no such file"):
		return "install the program, or put its folder into PATH; the kubeconfig's user names it under exec.command"
	}
	return "run the program that the kubeconfig's user names under exec by itself, and see what it wants"
}

// certificateHint is about a server that cannot prove who it is.
func certificateHint(err error) string {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return ""
	}
	return "the kubeconfig's certificate-authority-data (or certificate-authority) is not that of this server, or its address is not one that the" +
		" certificate is for; a proxy that reads along has a certificate of its own"
}

// proxyHint is about a proxy that cannot be reached.
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

// pathHint is about a server that cannot be reached.
func pathHint(err error) string {
	var network net.Error
	if !errors.As(err, &network) {
		return ""
	}
	return "check that the API server's address in the kubeconfig is right and can be reached from here"
}
