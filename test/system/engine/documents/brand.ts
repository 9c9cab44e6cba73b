import t from 'tap'
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brandFiles } from '../../../../src/engine/documents/page-frame.ts'

const TEMPLATES = new URL('../../../../templates/', import.meta.url)

t.test('ships the icons that their program draws', async (t) => {
  const directory = t.testdir({})
  const program = join(directory, 'favicon.mjs')
  copyFileSync(new URL('favicon.mjs', TEMPLATES), program)
  execFileSync(process.execPath, [program])
  for (const name of ['favicon.svg', 'favicon.ico'])
    t.ok(readFileSync(join(directory, name)).equals(readFileSync(new URL(name, TEMPLATES))), name)
})

t.test('old browsers find a small and a large picture in the icon', async (t) => {
  const icon = brandFiles.find(({ path }) => path === '/favicon.ico')?.bytes ?? Buffer.alloc(6)
  t.strictSame([icon.readUInt16LE(0), icon.readUInt16LE(2)], [0, 1])
  const sizes = Array.from({ length: icon.readUInt16LE(4) }, (_, index) => {
    const at = 6 + 16 * index
    const [bytes, offset] = [icon.readUInt32LE(at + 8), icon.readUInt32LE(at + 12)]
    t.ok(offset + bytes <= icon.length)
    t.equal(icon.readInt32LE(offset + 4), icon.readUInt8(at), 'the bitmap is as wide as the list says')
    return icon.readUInt8(at)
  })
  t.strictSame(sizes, [16, 32])
})

t.test('keeps the style sheet inside its element and free of imports', async (t) => {
  const style = brandFiles.find(({ path }) => path === '/brand.css')?.bytes.toString() ?? ''
  t.notMatch(style, /<\/|@import|url\(|@font-face/i)
  t.match(style, /prefers-color-scheme: dark/)
  t.match(style, /@media print/)
  t.match(style, /:focus-visible/)
})

/** Relative luminance and contrast as WCAG 2.2 defines them. */
function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [one, other].map(luminance).toSorted((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

t.test('every text is readable, by day and by night (WCAG AA)', async (t) => {
  const style = brandFiles.find(({ path }) => path === '/brand.css')?.bytes.toString() ?? ''
  const schemes = [...style.matchAll(/:root \{(.*?)\}/gs)]
    .slice(0, 2)
    .map(([, block = '']) =>
      Object.fromEntries(
        [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value ?? '']),
      ),
    )
  t.equal(schemes.length, 2)
  for (const scheme of schemes) {
    for (const ink of ['ink', 'soft', 'accent', 'notice', 'bad'])
      for (const ground of ['paper', 'tint'])
        t.ok(contrast(scheme[ink] ?? '', scheme[ground] ?? '') >= 4.5, `${ink} on ${ground}`)
    t.ok(contrast(scheme['notice'] ?? '', scheme['notice-tint'] ?? '') >= 4.5, 'a notice')
  }
})
