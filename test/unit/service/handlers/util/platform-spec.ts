import t from 'tap'
import { InvalidParameter, type JsonObject } from '../../../../../src/engine/handler.ts'
import { platformSpec } from '../../../../../src/service/handlers/util/platform-spec.ts'
import { platformLimits } from '../../../../../src/service/handlers/util/platform-spec/table.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { compareLimits } from '../../../../support/service/reference-data.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

type Question = Parameters['util/platform-spec']

const NAMES: readonly Question['platform'][] = [
  'tiktok',
  'instagram',
  'youtube',
  'facebook',
  'x',
  'linkedin',
  'pinterest',
  'snapchat',
  'threads',
  'bluesky',
  'reddit',
  'mastodon',
  'twitch',
  'whatsapp',
]
const TYPES: readonly Question['type'][] = [
  'video',
  'short',
  'story',
  'image',
  'carousel',
  'text',
  'thumbnail',
  'profile',
  'cover',
  'live',
  'ad',
]

async function ask(platform: Question['platform'], type: Question['type']) {
  return checkedAnswer('util/platform-spec', await platformSpec.run({ platform, type }, fixedContext()))
}

t.test('gives size, length, formats and caption of a short video for TikTok, as published', async (t) => {
  const { body, warnings } = await ask('tiktok', 'video')
  t.match(body, {
    platform: 'tiktok',
    type: 'video',
    spec: {
      aspect_ratio: { recommended: '9:16', allowed: ['9:16', '1:1', '16:9'] },
      resolution: { recommended: { width: 1080, height: 1920 } },
      duration_seconds: { min: 3, max: 600, max_upload: 3600 },
      file_size_bytes: { max: 4_000_000_000 },
      formats: ['mp4', 'mov', 'webm'],
      frame_rate: { min: 23, max: 60 },
      caption: { max_chars: 2200 },
      safe_zone_px: { top: 130, bottom: 484, left: 44, right: 140 },
    },
    confidence: 'official',
  })
  t.strictSame(warnings, [])
  t.strictSame(body, publishedExample('util/platform-spec'))
})

t.test('answers every combination in full, or refuses it with the combinations that exist', async (t) => {
  let answered = 0
  for (const platform of NAMES) {
    const available = Object.keys(platformLimits().platforms[platform] ?? {})
    t.ok(available.length > 0, platform)
    for (const type of TYPES) {
      if (!available.includes(type)) {
        await t.rejects(
          ask(platform, type),
          new InvalidParameter('type', `type '${type}' is not available for platform '${platform}'`, {
            available,
          }),
        )
        continue
      }
      const { body, warnings = [] } = await ask(platform, type)
      answered++
      t.match(body, {
        source_url: /^https:\/\//,
        available_types: available,
        verified_at: /^20\d\d-\d\d-\d\d$/,
        confidence: /^(?:official|guides)$/,
      })
      const named = warnings.map(({ code }) => code)
      t.strictSame(named, body['confidence'] === 'guides' ? ['read_in_guides'] : [], `${platform} ${type}`)
    }
  }
  t.equal(
    answered,
    Object.values(platformLimits().platforms).flatMap((rows) => Object.keys(rows)).length,
    'no row is out of reach',
  )
  t.ok(answered >= 45)
})

t.test('refuses limits that were read longer ago than they are relied on', async (t) => {
  const on = (day: string) =>
    platformSpec.run(
      { platform: 'tiktok', type: 'video' },
      fixedContext({ now: () => new Date(`${day}T20:00:00Z`) }),
    )
  t.match(checkedAnswer('util/platform-spec', await on('2027-11-21')).body, { age_days: 365 })
  await t.rejects(on('2027-11-22'), {
    code: 'dataset_unavailable',
    detail: /last read 366 days ago, more than the 365/,
  })
})

t.test('keeps limits consistent: least before most, the recommended size between them', async (t) => {
  const pixels = (size: string) => size.split('x').reduce((area, side) => area * Number(side), 1)
  for (const [platform, rows] of Object.entries(platformLimits().platforms)) {
    for (const [type, row] of Object.entries(rows)) {
      const name = `${platform} ${type}`
      const { resolution, duration_seconds: duration, frame_rate: rate } = row
      if (duration?.min && duration.max) t.ok(duration.min < duration.max, name)
      if (duration?.max_upload) t.ok(duration.max_upload >= (duration.max ?? 0), name)
      if (rate?.min && rate.max) t.ok(rate.min < rate.max, name)
      if (resolution?.min) t.ok(pixels(resolution.min) <= pixels(resolution.recommended), name)
      if (resolution?.max) t.ok(pixels(resolution.recommended) <= pixels(resolution.max), name)
      t.equal(new Date(row.verified_at).toISOString().slice(0, 10), row.verified_at, name)
    }
  }
})

t.test('has the limits that programs and schemas of others have, but where a reason is known', (t) => {
  const { equal, differing, explained } = compareLimits()
  t.ok(equal >= 34, String(equal))
  t.strictSame(differing, explained)
  t.end()
})

t.test('gives a hint that produces what the row asks for', async (t) => {
  const hint = async (platform: Question['platform'], type: Question['type']) =>
    (await ask(platform, type)).body['ffmpeg_hint'] ?? null
  t.match(JSON.stringify(await hint('youtube', 'short')), /scale=1080:1920.*pad=1080:1920.* -t 180 .*libx264/)
  t.match(JSON.stringify(await hint('youtube', 'thumbnail')), /scale=1280:720.*-frames:v 1"$/)
  t.equal(await hint('x', 'text'), null)
})

t.test('shows the frame and the longest duration only in the free sample', async (t) => {
  const { body } = await ask('tiktok', 'video')
  const preview: JsonObject = platformSpec.preview(body)
  t.strictSame(preview, {
    platform: 'tiktok',
    type: 'video',
    spec: {
      aspect_ratio: { recommended: '9:16', allowed: ['9:16', '1:1', '16:9'] },
      resolution: {
        recommended: { width: 1080, height: 1920 },
        min: { width: 360, height: 360 },
        max: { width: 4096, height: 4096 },
      },
      duration_seconds: { max: 600 },
    },
    confidence: 'official',
  })
  t.match(platformSpec.preview((await ask('x', 'text')).body), { spec: { duration_seconds: null } })
})
