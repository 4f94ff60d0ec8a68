{{- define "joiner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "joiner.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "joiner.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "joiner.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "joiner.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "joiner.image" -}}
{{- $image := .Values.controller.image -}}
{{- if hasSuffix "karpenter/controller" $image.repository -}}
{{- fail (printf "controller.image.repository is %s, which is Karpenter's image: leave controller.image out, or name your copy of ghcr.io/joiner-sh/joiner" $image.repository) -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Which pods are the controller's. It cannot change in an upgrade. */}}
{{- define "joiner.selector" -}}
app.kubernetes.io/name: {{ include "joiner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "joiner.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "joiner.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Metadata of an object: "root", "name"; "namespace", "labels" and "annotations" where it has its own. */}}
{{- define "joiner.metadata" -}}
{{- $meta := dict "name" .name "labels" (merge (.labels | default dict | deepCopy) (include "joiner.labels" .root | fromYaml)) -}}
{{- with .namespace -}}{{- $_ := set $meta "namespace" . -}}{{- end -}}
{{- with merge (.annotations | default dict | deepCopy) (.root.Values.additionalAnnotations | default dict) -}}
{{- $_ := set $meta "annotations" . -}}
{{- end -}}
{{- toYaml $meta -}}
{{- end -}}

{{/* The pods tolerate these whatever else they are to tolerate: without, a cluster whose system pods are on Fargate or on
nodes of their own would wait for its controller for ever. */}}
{{- define "joiner.tolerations" -}}
{{- $always := list
  (dict "key" "CriticalAddonsOnly" "operator" "Exists")
  (dict "key" "eks.amazonaws.com/compute-type" "operator" "Equal" "value" "fargate" "effect" "NoSchedule") -}}
{{- concat $always (.Values.tolerations | default list) | uniq | toYaml -}}
{{- end -}}

{{/* A spread without selector is about our own pods, each revision of the Deployment by itself: otherwise the pods of the
old one would be in the way of the new one's. */}}
{{- define "joiner.spread" -}}
{{- $own := dict "matchLabels" (include "joiner.selector" . | fromYaml) -}}
{{- $all := list -}}
{{- range .Values.topologySpreadConstraints -}}
{{- $one := deepCopy . -}}
{{- if not (hasKey $one "labelSelector") -}}
{{- $_ := set $one "labelSelector" $own -}}
{{- if not (hasKey $one "matchLabelKeys") -}}
{{- $_ := set $one "matchLabelKeys" (list "pod-template-hash") -}}
{{- end -}}
{{- end -}}
{{- $all = append $all $one -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* A term of pod affinity without selector is about our own pods. */}}
{{- define "joiner.affinity" -}}
{{- $own := dict "matchLabels" (include "joiner.selector" . | fromYaml) -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- $rules := get $affinity $kind | default dict -}}
{{- range $term := get $rules "requiredDuringSchedulingIgnoredDuringExecution" | default list -}}
{{- if not (hasKey $term "labelSelector") -}}{{- $_ := set $term "labelSelector" $own -}}{{- end -}}
{{- end -}}
{{- range $wish := get $rules "preferredDuringSchedulingIgnoredDuringExecution" | default list -}}
{{- if not (hasKey $wish.podAffinityTerm "labelSelector") -}}{{- $_ := set $wish.podAffinityTerm "labelSelector" $own -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{/* A security context without what is empty in it: Karpenter's values have empty profiles, which the API server refuses. */}}
{{- define "joiner.secured" -}}
{{- $out := dict -}}
{{- range $key, $value := . -}}
{{- if or (not (kindIs "map" $value)) $value -}}{{- $_ := set $out $key $value -}}{{- end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{- define "joiner.featureGates" -}}
{{- $g := .Values.settings.featureGates -}}
{{- printf "NodeRepair=%t,ReservedCapacity=%t,NodeOverlay=%t,StaticCapacity=%t,SpotToSpotConsolidation=%t,CapacityBuffer=%t"
  $g.nodeRepair $g.reservedCapacity $g.nodeOverlay $g.staticCapacity $g.spotToSpotConsolidation $g.capacityBuffer -}}
{{- end -}}
