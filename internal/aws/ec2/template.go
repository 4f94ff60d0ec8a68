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

// TemplatePrefix begins the name of every launch template of ours, and of Karpenter's.
const TemplatePrefix = "karpenter.k8s.aws/"

// Template is a launch template as EC2 shows it.
type Template struct {
	ID, Name  string    // "lt-0123", and the name of the template
	NodePool  string    // of its tags; empty: none
	NodeClass string    // of its tags; empty: none
	Created   time.Time // creation time
	// Used is when this process last launched from it; zero if it never did.
	Used time.Time
}

// templates are the launch templates that this process knows to exist, by name.
type templates struct {
	mu    sync.Mutex
	known map[string]*knownTemplate
}

// knownTemplate is made once, however many launches ask for it at the same time.
type knownTemplate struct {
	done chan struct{} // closed when err is set
	err  error
	used time.Time
}

// name returns the template's name: a hash of its content and of the cluster's UID, so each process uses the same name and no other
// cluster does.
func (d *Client) name(content Blueprint, tags map[string]string) (string, error) {
	data, err := json.Marshal(struct { // maps are written sorted by key
		UID     string
		Content Blueprint
		Tags    map[string]string // our cluster's name among them
	}{d.cluster.UID, content, tags})
	if err != nil {
		return "", fmt.Errorf("name launch template: %w", err)
	}
	sum := sha256.Sum256(data)
	return TemplatePrefix + hex.EncodeToString(sum[:16]), nil
}

// ensure returns the name of the launch template with this content, which then exists.
func (d *Client) ensure(ctx context.Context, content Blueprint, tags map[string]string) (string, error) {
	name, err := d.name(content, tags)
	if err != nil {
		return "", err
	}
	known, mine := d.templates.claim(name)
	if mine {
		// Others wait for it: it must not fail because the first launch was given up.
		all, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		known.err = d.create(all, name, content, tags)
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
		return "", awserr.Sort("CreateLaunchTemplate", ctx.Err())
	}
}

// claim returns what is known of the template; the second result is true for the one who must make it.
func (t *templates) claim(name string) (*knownTemplate, bool) {
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

// forget drops what is known of the template, unless it was made anew since; nil: in any case.
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

// create makes the template. One that is there already has the same content, since the
// name is made from it: a process before us made it.
func (d *Client) create(ctx context.Context, name string, content Blueprint, tags map[string]string) error {
	_, err := d.writes.CreateLaunchTemplate(ctx, &awsec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name),
		LaunchTemplateData: content.data(tags),
		TagSpecifications: []awstypes.TagSpecification{
			{ResourceType: awstypes.ResourceTypeLaunchTemplate, Tags: toTags(tags)},
		},
	})
	err = awserr.Sort("CreateLaunchTemplate", err)
	if e := awserr.Of(err); e != nil && strings.HasPrefix(e.Code, "InvalidLaunchTemplateName.AlreadyExists") {
		return nil
	}
	return err
}

// Templates returns this cluster's launch templates, sorted by name. Templates of another cluster with the same name, and templates
// without UID (Karpenter's, which it deletes itself), are left out.
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
			return nil, awserr.Sort("DescribeLaunchTemplates", err)
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

// SweepTemplates deletes our launch templates for which keep is false and returns how
// many it deleted. A launch that needs one of them at that moment makes it again.
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
		err = awserr.Sort("DeleteLaunchTemplate", err)
		if e := awserr.Of(err); e != nil && e.Reason != "LaunchTemplateNotFound" {
			return deleted, fmt.Errorf("sweep launch template %s: %w", t.Name, err)
		}
		deleted++
	}
	return deleted, nil
}

// DeleteTemplates deletes our launch templates of a NodeClass: for when it is deleted.
func (d *Client) DeleteTemplates(ctx context.Context, nodeClass string) (int, error) {
	return d.SweepTemplates(ctx, func(t Template) bool { return t.NodeClass != nodeClass })
}
