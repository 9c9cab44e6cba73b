import { readLinkedData } from './linked-data.ts'
import { descendants, textOf, type Element } from './tree.ts'

/** The metadata of a page. */
export interface Head {
  readonly title: string | null
  readonly description: string | null
  readonly byline: string | null
  readonly site_name: string | null
  readonly lang: string | null
  readonly published_at: string | null
  readonly canonical: string | null
  readonly generator: string | null
}

const LONGEST = 500

export function readHead(root: Element): Head {
  const metas = new Map<string, string>()
  const scripts: string[] = []
  let title: string | null = null
  let heading: string | null = null
  let lang: string | null = null
  let canonical: string | null = null
  let time: string | null = null
  for (const element of descendants(root)) {
    const { tag, attributes } = element
    if (tag === 'meta') {
      const name = (attributes.get('property') ?? attributes.get('name') ?? '').toLowerCase()
      if (!metas.has(name)) metas.set(name, attributes.get('content') ?? '')
    } else if (tag === 'script' && attributes.get('type')?.toLowerCase() === 'application/ld+json')
      scripts.push(textOf(element))
    else if (tag === 'title') title ??= clean(textOf(element))
    else if (tag === 'h1') heading ??= clean(textOf(element))
    else if (tag === 'html') lang ??= clean(attributes.get('lang') ?? '')
    else if (tag === 'time') time ??= clean(attributes.get('datetime') ?? '')
    else if (tag === 'link' && attributes.get('rel')?.toLowerCase() === 'canonical')
      canonical ??= clean(attributes.get('href') ?? '')
  }
  const meta = (...names: readonly string[]): string | null =>
    names.map((name) => clean(metas.get(name) ?? '')).find((text) => text !== null) ?? null
  const stated = readLinkedData(scripts)
  const published =
    meta('article:published_time', 'date', 'dc.date', 'dcterms.created') ?? stated.published_at ?? time
  return {
    title: meta('og:title') ?? clean(stated.title ?? '') ?? title ?? heading,
    description: meta('description', 'og:description') ?? clean(stated.description ?? ''),
    byline: meta('author', 'article:author', 'dc.creator') ?? clean(stated.byline ?? ''),
    site_name: meta('og:site_name', 'application-name') ?? clean(stated.site_name ?? ''),
    lang: lang ?? meta('og:locale', 'content-language') ?? clean(stated.lang ?? ''),
    published_at: published === null ? null : instant(published),
    canonical,
    generator: meta('generator'),
  }
}

function clean(text: string): string | null {
  const short = text.replaceAll(/\s+/g, ' ').trim().slice(0, LONGEST)
  return short === '' ? null : short.replace(/[\ud800-\udbff]$/, '')
}

function instant(text: string): string | null {
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}
