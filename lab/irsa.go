package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// Names that the feature IAM roles for service accounts (IRSA) uses: annotations of service accounts, and the values
// that EKS's webhook adds to a pod.
// https://docs.aws.amazon.com/eks/latest/userguide/iam-roles-for-service-accounts.html
const (
	roleAnnotation     = "eks.amazonaws.com/role-arn"
	audienceAnnotation = "eks.amazonaws.com/audience"
	stsAudience        = "sts.amazonaws.com"
	tokenFolder        = "var/run/secrets/eks.amazonaws.com/serviceaccount/"
)

// Issuer returns the issuer of the cluster's service account tokens.
func (s *ServiceAccounts) Issuer() (string, error) {
	var issuer string
	var err error
	s.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		var c *ekscluster.Cluster
		if c, err = w.Region(s.lab.Account, s.lab.Region).EKS.Cluster(s.lab.Cluster); err == nil {
			issuer = c.Issuer
		}
	})
	return issuer, err
}

// publishKeys publishes the API server's signing keys at the cluster's issuer, as EKS does.
func (s *ServiceAccounts) publishKeys(ctx context.Context, issuer string) error {
	keys, err := s.lab.Kube.CoreV1().RESTClient().Get().AbsPath("/openid/v1/jwks").SetHeader("Accept", "application/jwk-set+json").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the keys of service account tokens: %w", err)
	}
	s.lab.Emulator.Do(func(w *world.World, _ time.Time) { err = w.SetIssuerKeys(issuer, keys) })
	return err
}

// TrustServiceAccount allows exactly one service account of the cluster to assume a role. It creates an OIDC identity
// provider for the cluster's issuer, unless the AWS account has one, and sets a trust policy as in AWS's documentation.
func (r *Roles) TrustServiceAccount(role, namespace, account string) error {
	issuer, err := r.lab.ServiceAccounts.Issuer()
	if err != nil {
		return err
	}
	r.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		awsAccount := w.Account(r.lab.Account)
		isOfCluster := func(p identity.Provider) bool { return p.Issuer == issuer }
		if !slices.ContainsFunc(awsAccount.IdentityProviders(), isOfCluster) {
			if _, err = awsAccount.CreateIdentityProvider(issuer, stsAudience); err != nil {
				return
			}
		}
		provider := awsAccount.IdentityProviders()[slices.IndexFunc(awsAccount.IdentityProviders(), isOfCluster)]
		host := issuer[len("https://"):]
		err = awsAccount.UpdateTrust(role, fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":%q},
			"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{"%s:sub":%q,"%s:aud":%q}}}]}`,
			provider.ARN, host, serviceAccountUser(namespace, account), host, stsAudience))
	})
	if err != nil {
		return fmt.Errorf("let service account %s/%s assume role %s: %w", namespace, account, role, err)
	}
	return nil
}

// WebIdentity returns the environment, as NAME=value, of a program whose only credentials are the token of a service
// account. An empty audience means sts.amazonaws.com.
func (s *ServiceAccounts) WebIdentity(ctx context.Context, namespace, account, roleARN, audience string) ([]string, error) {
	if audience == "" {
		audience = stsAudience
	}
	token, err := s.serviceToken(ctx, namespace, account, audience)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.lab.Home, namespace+"-"+account+".token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return nil, fmt.Errorf("write the token of service account %s/%s: %w", namespace, account, err)
	}
	return append([]string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN="}, s.webIdentity(roleARN, file)...), nil
}

// webIdentity returns the variables that EKS's webhook adds to a pod.
func (s *ServiceAccounts) webIdentity(roleARN, file string) []string {
	return []string{
		"AWS_STS_REGIONAL_ENDPOINTS=regional", "AWS_DEFAULT_REGION=" + s.lab.Region, "AWS_REGION=" + s.lab.Region,
		"AWS_ROLE_ARN=" + roleARN, "AWS_WEB_IDENTITY_TOKEN_FILE=" + file,
	}
}

// webhookAdditions returns the files, by path, and the variables that EKS's webhook adds to a pod whose service account
// is annotated with a role. Without the annotation, it returns nil.
func (s *ServiceAccounts) webhookAdditions(
	ctx context.Context, namespace, account string,
) (files map[string]string, env []string, err error) {
	found, err := s.lab.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("read service account %s/%s: %w", namespace, account, err)
	}
	role := found.Annotations[roleAnnotation]
	if role == "" {
		return nil, nil, nil
	}
	audience := found.Annotations[audienceAnnotation]
	if audience == "" {
		audience = stsAudience
	}
	token, err := s.serviceToken(ctx, namespace, account, audience)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{tokenFolder + "token": token}, s.webIdentity(role, "/"+tokenFolder+"token"), nil
}

// serviceToken requests a token of a service account. An empty audience means the API server.
func (s *ServiceAccounts) serviceToken(ctx context.Context, namespace, account, audience string) (string, error) {
	seconds := int64(24 * 60 * 60) // the default of EKS's webhook
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	token, err := s.lab.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a token of service account %s/%s: %w", namespace, account, err)
	}
	return token.Status.Token, nil
}
