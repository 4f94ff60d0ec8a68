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
{{- fail (printf "controller.image.repository is %s, which is Karpenter's image: remove controller.image, or name your copy of ghcr.io/joiner-sh/joiner" $image.repository) -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* joiner.selector prints the labels that select the controller's pods. A Deployment's selector cannot change in an upgrade. */}}
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

{{/* joiner.metadata prints the metadata of the object "name". "root" is the root context, and the other arguments are optional. */}}
{{- define "joiner.metadata" -}}
{{- $meta := dict "name" .name "labels" (merge (.labels | default dict | deepCopy) (include "joiner.labels" .root | fromYaml)) -}}
{{- with .namespace -}}{{- $_ := set $meta "namespace" . -}}{{- end -}}
{{- with merge (.annotations | default dict | deepCopy) (.root.Values.additionalAnnotations | default dict) -}}
{{- $_ := set $meta "annotations" . -}}
{{- end -}}
{{- toYaml $meta -}}
{{- end -}}

{{/* joiner.tolerations prints the tolerations of the pods. The first two are always set: without them, the controller would stay Pending in a
cluster whose system pods run on Fargate or on tainted nodes. */}}
{{- define "joiner.tolerations" -}}
{{- $always := list
  (dict "key" "CriticalAddonsOnly" "operator" "Exists")
  (dict "key" "eks.amazonaws.com/compute-type" "operator" "Equal" "value" "fargate" "effect" "NoSchedule") -}}
{{- concat $always (.Values.tolerations | default list) | uniq | toYaml -}}
{{- end -}}

{{/* joiner.spread prints the topology spread constraints. A constraint without a selector counts the controller's pods, and each revision of the
Deployment separately: otherwise pods of the old revision could block pods of the new one. */}}
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

{{/* joiner.affinity prints the affinity. A pod affinity term without a selector selects the controller's pods. */}}
{{- define "joiner.affinity" -}}
{{- $own := dict "matchLabels" (include "joiner.selector" . | fromYaml) -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- $rules := get $affinity $kind | default dict -}}
{{- range $term := get $rules "requiredDuringSchedulingIgnoredDuringExecution" | default list -}}
{{- if not (hasKey $term "labelSelector") -}}{{- $_ := set $term "labelSelector" $own -}}{{- end -}}
{{- end -}}
{{- range $preference := get $rules "preferredDuringSchedulingIgnoredDuringExecution" | default list -}}
{{- if not (hasKey $preference.podAffinityTerm "labelSelector") -}}{{- $_ := set $preference.podAffinityTerm "labelSelector" $own -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{/* joiner.secured prints a security context without empty maps. Karpenter's values contain empty profiles, which the API server refuses. */}}
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
