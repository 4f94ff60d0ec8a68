package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/joiner-sh/joiner/lab/authn"
	"github.com/joiner-sh/joiner/lab/pki"
)

// startTokenWebhook serves the webhook that reviews tokens. It returns the path of the kubeconfig with which the API
// server calls the webhook.
func (l *Lab) startTokenWebhook(authority *pki.Authority) (string, error) {
	log, err := os.OpenFile(l.Logs("authenticator"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("open log of the authenticator: %w", err)
	}
	certificate, err := serverCertificate(authority, "authenticator")
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for token reviews: %w", err)
	}
	config := l.AWS()
	config.HTTPClient = &countingClient{Client: http.Client{Timeout: 10 * time.Second}, calls: &l.ownCalls}
	l.reviews = authn.New(authn.Options{
		Cluster: l.Cluster, Region: l.Region, Endpoint: l.Endpoint, AWS: config, AWSAuth: l.auth.data, Log: log,
	})
	l.tokens = &http.Server{
		Handler:   l.reviews,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = l.tokens.ServeTLS(listener, "", "") }()

	path := filepath.Join(l.Home, "authenticator.kubeconfig")
	kubeconfig := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"authenticator": {
			Server: "https://" + listener.Addr().String() + "/authenticate", CertificateAuthorityData: authority.PEM,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"apiserver": {}},
		Contexts:       map[string]*clientcmdapi.Context{"authenticator": {Cluster: "authenticator", AuthInfo: "apiserver"}},
		CurrentContext: "authenticator",
	}
	if err := clientcmd.WriteToFile(kubeconfig, path); err != nil {
		return "", fmt.Errorf("write the authenticator's kubeconfig: %w", err)
	}
	return path, nil
}

// awsAuth caches the ConfigMap kube-system/aws-auth.
type awsAuth struct {
	current atomic.Pointer[corev1.ConfigMap]
}

// data returns the data of the ConfigMap. The second result is false if the ConfigMap does not exist.
func (a *awsAuth) data() (map[string]string, bool) {
	if m := a.current.Load(); m != nil {
		return m.Data, true
	}
	return nil, false
}

// watch starts a watch that keeps the cache current until ctx ends. It returns once the cache has the ConfigMap, or the
// API server has reported that the ConfigMap does not exist.
func (a *awsAuth) watch(ctx context.Context, client kubernetes.Interface) error {
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", metav1.NamespaceSystem,
		fields.OneTermEqualSelector("metadata.name", "aws-auth"))
	store := func(object any) {
		if m, ok := object.(*corev1.ConfigMap); ok {
			a.current.Store(m)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: store, UpdateFunc: func(_, object any) { store(object) }, DeleteFunc: func(any) { a.current.Store(nil) },
		},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watch aws-auth: %w", context.Cause(ctx))
	}
	return nil
}
