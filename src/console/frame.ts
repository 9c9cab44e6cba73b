import { readFileSync } from 'node:fs'
import { compilePage, readStyleSheet } from '../engine/documents/page-frame.ts'
import { type TemplateContext, TEMPLATES } from '../engine/documents/template.ts'
import type { ConsoleSources } from './sources.ts'
import type { View } from './view.ts'

export const SECURITY_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  // Without a referrer, browsers send no origin with a form either.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}

interface BrandFile {
  readonly type: string
  readonly bytes: Buffer
}

const FILES: ReadonlyMap<string, BrandFile> = new Map([
  [
    '/console.css',
    { type: 'text/css; charset=utf-8', bytes: Buffer.from(readStyleSheet('console/console.css')) },
  ],
  ['/console.js', file('console/console.js', 'text/javascript; charset=utf-8')],
  ['/favicon.svg', file('favicon.svg', 'image/svg+xml')],
])

function file(name: string, type: string): BrandFile {
  return { type, bytes: readFileSync(new URL(name, TEMPLATES)) }
}

/** A file that the pages refer to. */
export function brandFile(path: string): BrandFile | undefined {
  return FILES.get(path)
}

/** The frame of a page: title, navigation, what is shown. */
export function frameOf(
  view: View,
  title: string,
  { service, sandbox, version, baseUrl }: ConsoleSources,
  views: readonly View[],
): TemplateContext {
  const { catalog } = service.revision()
  return {
    title,
    service: catalog.service.name,
    revision: catalog.revision,
    sandbox,
    version,
    baseUrl,
    views: views.map(({ path, title: label }) => ({ path, label, current: label === view.title })),
  }
}

const printFrameless = compilePage('console/message.html.hbs')

/** A page without navigation, for those who see nothing else. `next`: where it goes on by itself; empty: nowhere. */
export function printMessage(context: {
  readonly title: string
  readonly text: string
  readonly next: string
}): string {
  return printFrameless(context)
}
