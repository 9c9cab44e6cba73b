// Draws favicon.svg and favicon.ico from one list of shapes: node templates/favicon.mjs
import { writeFileSync } from 'node:fs'

const SIDE = 32
const GROUND = [0x0b, 0x5a, 0x52]
const INK = [0xfc, 0xfb, 0xf8]

/** A rate card: names on the left, prices on the right. */
const SHAPES = [
  { x: 0, y: 0, width: 32, height: 32, radius: 6, colour: GROUND },
  ...[7, 14, 21].flatMap((y, row) => [
    { x: 6, y, width: [10, 7, 12][row], height: 4, radius: 1, colour: INK },
    { x: 22, y, width: 4, height: 4, radius: 1, colour: INK },
  ]),
]

function svg() {
  const rects = SHAPES.map(({ x, y, width, height, radius, colour }) => {
    const fill = `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
    return `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}" fill="${fill}"/>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIDE} ${SIDE}">${rects.join('')}</svg>\n`
}

function covers({ x, y, width, height, radius }, px, py) {
  const dx = Math.max(x + radius - px, px - (x + width - radius), 0)
  const dy = Math.max(y + radius - py, py - (y + height - radius), 0)
  return dx * dx + dy * dy <= radius * radius && px >= x && px <= x + width && py >= y && py <= y + height
}

const FINE = 8

/** Colour and opacity of one pixel, from a grid of points inside it. */
function pixel(column, row, size) {
  const sum = [0, 0, 0]
  let hits = 0
  for (let i = 0; i < FINE * FINE; i += 1) {
    const px = ((column + ((i % FINE) + 0.5) / FINE) * SIDE) / size
    const py = ((row + (Math.floor(i / FINE) + 0.5) / FINE) * SIDE) / size
    const top = SHAPES.findLast((shape) => covers(shape, px, py))
    if (top === undefined) continue
    hits += 1
    top.colour.forEach((part, index) => (sum[index] += part))
  }
  const [red, green, blue] = sum.map((part) => (hits === 0 ? 0 : Math.round(part / hits)))
  return [blue, green, red, Math.round((255 * hits) / FINE ** 2)]
}

/** A picture of an icon file: a bitmap of 32 bits from the bottom up, and a mask that its opacity makes needless. */
function picture(size) {
  const header = Buffer.alloc(40)
  header.writeUInt32LE(40, 0)
  header.writeInt32LE(size, 4)
  header.writeInt32LE(size * 2, 8)
  header.writeUInt16LE(1, 12)
  header.writeUInt16LE(32, 14)
  const rows = Array.from({ length: size }, (_, row) => size - 1 - row)
  const pixels = rows.flatMap((row) => Array.from({ length: size }, (_, column) => pixel(column, row, size)).flat())
  return Buffer.concat([header, Buffer.from(pixels), Buffer.alloc(Math.ceil(size / 32) * 4 * size)])
}

function ico(sizes) {
  const pictures = sizes.map(picture)
  const head = Buffer.alloc(6 + 16 * sizes.length)
  head.writeUInt16LE(1, 2)
  head.writeUInt16LE(sizes.length, 4)
  let offset = head.length
  sizes.forEach((size, index) => {
    const at = 6 + 16 * index
    head.writeUInt8(size, at)
    head.writeUInt8(size, at + 1)
    head.writeUInt16LE(1, at + 4)
    head.writeUInt16LE(32, at + 6)
    head.writeUInt32LE(pictures[index].length, at + 8)
    head.writeUInt32LE(offset, at + 12)
    offset += pictures[index].length
  })
  return Buffer.concat([head, ...pictures])
}

writeFileSync(new URL('favicon.svg', import.meta.url), svg())
writeFileSync(new URL('favicon.ico', import.meta.url), ico([16, 32]))
