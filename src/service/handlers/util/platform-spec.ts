import { Failure, InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject, Warning } from 'ratecard/handler'
import type { HandlerWithPreview } from '../catalog.ts'
import { platformLimits, type Row } from './platform-spec/table.ts'

const READ_IN_GUIDES: Warning = {
  code: 'read_in_guides',
  message:
    'These figures were read in independent guides that agree, not on the page of the platform: look at source_url before you rely on them',
}
const DAY_MS = 86_400_000

/** Limits of a post on a platform, out of a dated table; a row that is too old is refused. */
export const platformSpec: HandlerWithPreview<'util/platform-spec'> = {
  run: async ({ platform, type }, { now }) => {
    const { platforms, version, max_age_days: mostDays } = platformLimits()
    const rows = platforms[platform] ?? {}
    const available = Object.keys(rows)
    const row = rows[type]
    if (row === undefined) {
      const sentence = `type '${type}' is not available for platform '${platform}'`
      throw new InvalidParameter('type', sentence, { available })
    }
    const { source_url: url, verified_at: verifiedAt, confidence } = row
    const age = Math.max(0, Math.floor((now().getTime() - Date.parse(verifiedAt)) / DAY_MS))
    if (age > mostDays)
      throw new Failure(
        'dataset_unavailable',
        `These limits were last read ${age} days ago, more than the ${mostDays} they are relied on for`,
        { retryAfter: DAY_MS / 1000, extra: { source_url: url } },
      )
    return {
      source: [{ name: 'Platform limits', url, version, published_at: version }],
      warnings: confidence === 'guides' ? [READ_IN_GUIDES] : [],
      body: {
        platform,
        type,
        spec: specOf(row),
        ffmpeg_hint: ffmpegHint(row),
        available_types: available,
        confidence,
        source_url: url,
        verified_at: verifiedAt,
        age_days: age,
      },
    }
  },

  preview: ({ platform = null, type = null, spec, confidence = null }) => {
    const { aspect_ratio: ratio = null, resolution = null, duration_seconds: duration } = membersOf(spec)
    const { max = null } = membersOf(duration)
    return {
      platform,
      type,
      spec: { aspect_ratio: ratio, resolution, duration_seconds: max === null ? null : { max } },
      confidence,
    }
  },
}

function membersOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

/** Every field is there; null is what the platform does not limit, or a limit that is not known. */
function specOf(row: Row): JsonObject {
  const [recommended] = row.aspect_ratios ?? []
  const { max_bytes: bytes, max_hashtags: hashtags } = row
  return {
    aspect_ratio: recommended === undefined ? null : { recommended, allowed: row.aspect_ratios ?? [] },
    resolution: resolutionOf(row),
    duration_seconds: row.duration_seconds ?? null,
    file_size_bytes: bytes ? { max: bytes } : null,
    formats: row.formats ?? null,
    video_codecs: row.video_codecs ?? null,
    audio_codecs: row.audio_codecs ?? null,
    frame_rate: row.frame_rate ?? null,
    max_items: row.max_items ?? null,
    caption: null,
    ...Object.fromEntries(Object.entries(row.text ?? {}).map(([part, max]) => [part, { max_chars: max }])),
    text_unit: row.text ? (row.text_unit ?? 'characters') : null,
    hashtags: hashtags ? { max: hashtags } : null,
    safe_zone_px: row.safe_zone_px ?? null,
    notes: row.notes ?? null,
  }
}

function resolutionOf({ resolution }: Row): JsonObject | null {
  if (!resolution) return null
  const { recommended, min, max } = resolution
  return {
    recommended: sizeOf(recommended),
    ...(min ? { min: sizeOf(min) } : {}),
    ...(max ? { max: sizeOf(max) } : {}),
  }
}

function sizeOf(text: string): JsonObject {
  const [width = 0, height = 0] = text.split('x').map(Number)
  return { width, height }
}

/** Options for ffmpeg that make a video, or a picture, of the recommended size: scaled to fit and padded. */
function ffmpegHint({
  resolution,
  duration_seconds: duration,
  video_codecs: codecs,
  formats,
}: Row): string | null {
  if (!resolution) return null
  const [width, height] = resolution.recommended.split('x')
  const fit = `scale=${width}:${height}:force_original_aspect_ratio=decrease,pad=${width}:${height}:(ow-iw)/2:(oh-ih)/2`
  if (!codecs && !duration) return formats?.includes('jpeg') === true ? `-vf "${fit}" -frames:v 1` : null
  const cut = duration?.max ? ` -t ${duration.max}` : ''
  return `-vf "${fit}"${cut} -r 30 -c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart`
}
