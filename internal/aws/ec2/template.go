package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// TemplatePrefix is the prefix of the names of our launch templates and of Karpenter's.
const TemplatePrefix = "karpenter.k8s.aws/"

// Template is a launch template, read from EC2.
type Template struct {
	ID, Name  string    // "lt-0123", and the name of the template
	NodePool  string    // from its tags; empty: none
	NodeClass string    // from its tags; empty: none
	Created   time.Time // creation time
	// Used is when this process last launched from the template; zero if it never did.
	Used time.Time
}

// templates holds the launch templates that this process knows to exist, or is creating.
type templates struct {
	mu    sync.Mutex
	known map[string]*knownTemplate // by name
}

// knownTemplate is a launch template that is created once, even if many launches need it at the same time.
type knownTemplate struct {
	done chan struct{} // closed when err is set
	err  error         // error of the creation
	used time.Time     // when a launch last used the template
}

// templateName returns the name of the template with this content: a hash of content, tags and the cluster's UID. So
// each process of this cluster uses the same name, and another cluster uses another.
func (d *Client) templateName(content Blueprint, tags map[string]string) (string, error) {
	data, err := json.Marshal(struct { // json.Marshal sorts map keys
		UID     string
		Content Blueprint
		Tags    map[string]string // including our cluster's name
	}{d.cluster.UID, content, tags})
	if err != nil {
		return "", fmt.Errorf("name launch template: %w", err)
	}
	sum := sha256.Sum256(data)
	return TemplatePrefix + hex.EncodeToString(sum[:16]), nil
}

// ensureTemplate returns the name of the launch template with this content. It creates the template if necessary.
func (d *Client) ensureTemplate(ctx context.Context, content Blueprint, tags map[string]string) (string, error) {
	name, err := d.templateName(content, tags)
	if err != nil {
		return "", err
	}
	known, mustCreate := d.templates.getOrAdd(name)
	if mustCreate {
		// Other launches wait for the template, so its creation must not fail because the first launch was canceled.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), mergedCallTimeout)
		known.err = d.createTemplate(shared, name, content, tags)
		cancel()
		if known.err != nil {
			d.templates.forget(name, known)
		}
		close(known.done)
	}
	select {
	case <-known.done:
		return name, known.err
	case <-ctx.Done():
		return "", awserr.Classify("CreateLaunchTemplate", ctx.Err())
	}
}

// getOrAdd returns the known template of this name, and adds it if it was not known. It returns true for an added
// template, which the caller must then create in EC2.
func (t *templates) getOrAdd(name string) (*knownTemplate, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.known[name]
	if !ok {
		known = &knownTemplate{done: make(chan struct{})}
		t.known[name] = known
	}
	known.used = time.Now()
	return known, !ok
}

// forget removes the template of this name from t, unless another knownTemplate has replaced known. If known is nil, it
// removes any template of this name.
func (t *templates) forget(name string, known *knownTemplate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known == nil || t.known[name] == known {
		delete(t.known, name)
	}
}

func (t *templates) used(name string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[name]; ok {
		return known.used
	}
	return time.Time{}
}

// createTemplate creates the template. A template of this name that EC2 already has is not an error: it has the same
// content, because the name is a hash of the content.
func (d *Client) createTemplate(ctx context.Context, name string, content Blueprint, tags map[string]string) error {
	_, err := d.writes.CreateLaunchTemplate(ctx, &awsec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name),
		LaunchTemplateData: content.templateData(tags),
		TagSpecifications: []awstypes.TagSpecification{
			{ResourceType: awstypes.ResourceTypeLaunchTemplate, Tags: toTags(tags)},
		},
	})
	err = awserr.Classify("CreateLaunchTemplate", err)
	if e := awserr.Of(err); e != nil && strings.HasPrefix(e.Code, "InvalidLaunchTemplateName.AlreadyExists") {
		return nil
	}
	return err
}

// Templates returns this cluster's launch templates, sorted by name. It leaves out templates of another cluster with
// the same name, and templates without UID, which Karpenter deletes itself.
func (d *Client) Templates(ctx context.Context) ([]Template, error) {
	var out []Template
	pages := awsec2.NewDescribeLaunchTemplatesPaginator(d.reads, &awsec2.DescribeLaunchTemplatesInput{
		MaxResults: aws.Int32(200),
		Filters: []awstypes.Filter{
			filter("tag:"+TagClusterName, d.cluster.Name),
			filter("tag:"+TagUID, d.cluster.UID),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeLaunchTemplates", err)
		}
		for _, t := range page.LaunchTemplates {
			tags := fromTags(t.Tags)
			if d.cluster.Owner(tags) != Ours {
				continue
			}
			name := aws.ToString(t.LaunchTemplateName)
			out = append(out, Template{ID: aws.ToString(t.LaunchTemplateId), Name: name, NodePool: tags[TagNodePool],
				NodeClass: tags[TagNodeClass], Created: aws.ToTime(t.CreateTime), Used: d.templates.used(name)})
		}
	}
	slices.SortFunc(out, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// SweepTemplates deletes our launch templates for which keep returns false, and returns the number of deleted
// templates. A launch that needs a deleted template creates it again.
func (d *Client) SweepTemplates(ctx context.Context, keep func(Template) bool) (int, error) {
	all, err := d.Templates(ctx)
	if err != nil {
		return 0, fmt.Errorf("sweep launch templates: %w", err)
	}
	deleted := 0
	for _, t := range all {
		if keep(t) {
			continue
		}
		d.templates.forget(t.Name, nil)
		_, err := d.writes.DeleteLaunchTemplate(ctx, &awsec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(t.ID)})
		err = awserr.Classify("DeleteLaunchTemplate", err)
		if e := awserr.Of(err); e != nil && e.Reason != "LaunchTemplateNotFound" {
			return deleted, fmt.Errorf("sweep launch template %s: %w", t.Name, err)
		}
		deleted++
	}
	return deleted, nil
}

// DeleteTemplates deletes our launch templates of a deleted EC2NodeClass, and returns the number of deleted templates.
func (d *Client) DeleteTemplates(ctx context.Context, nodeClass string) (int, error) {
	return d.SweepTemplates(ctx, func(t Template) bool { return t.NodeClass != nodeClass })
}
