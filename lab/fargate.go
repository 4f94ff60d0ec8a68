package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab/component"
	"github.com/joiner-sh/joiner/lab/fargate"
	"github.com/joiner-sh/joiner/lab/pki"
)

// startFargate starts Fargate, and registers its admission webhook with the API server under the webhook's name on EKS.
func (l *Lab) startFargate(ctx context.Context) error {
	log, err := os.OpenFile(l.Logs("fargate"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log of Fargate: %w", err)
	}
	l.Serverless = fargate.New(fargate.Options{
		Account: l.Account, Region: l.Region, Cluster: l.Cluster,
		Emulator: l.Emulator, Kube: l.Kube, Fleet: l.fleet, Server: l.plane.URL, CA: l.plane.CA, Version: component.Version,
		Review: l.reviews.Review, Launch: l.Pace.Pending + l.Pace.Boot, Log: log,
	})
	if err := l.Serverless.Start(l.ctx); err != nil {
		return err
	}
	address, err := l.serveAdmission(l.Serverless)
	if err != nil {
		return err
	}
	const name = "0500-amazon-eks-fargate-mutation.amazonaws.com"
	ignore, none, url, timeoutSeconds := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone,
		"https://"+address+"/mutate", int32(5)
	_, err = l.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx,
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: l.authority.PEM},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}},
				FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &timeoutSeconds, AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("register the webhook of Fargate: %w", err)
	}
	return nil
}

// serveAdmission serves a webhook to the API server and returns the address of the webhook.
func (l *Lab) serveAdmission(webhook http.Handler) (string, error) {
	certificate, err := serverCertificate(l.authority, "fargate")
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for admission reviews: %w", err)
	}
	l.admission = &http.Server{
		Handler: webhook, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = l.admission.ServeTLS(listener, "", "") }()
	return listener.Addr().String(), nil
}

// serverCertificate returns a certificate for the named server, on 127.0.0.1.
func serverCertificate(authority *pki.Authority, name string) (tls.Certificate, error) {
	pair, err := authority.IssueServer(name, "127.0.0.1")
	if err != nil {
		return tls.Certificate{}, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read certificate of %s: %w", name, err)
	}
	return certificate, nil
}

// AddExecutionRole creates a pod execution role for Fargate profiles.
func (r *Roles) AddExecutionRole(name string) error {
	var err error
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		account := w.Account(r.lab.Account)
		if err = addRole(now, account, name, fargate.Service); err == nil {
			err = account.AttachPolicy(name, "arn:"+account.Partition()+":iam::aws:policy/"+fargate.ExecutionPolicy)
		}
	})
	if err != nil {
		return fmt.Errorf("create pod execution role %s: %w", name, err)
	}
	return nil
}
