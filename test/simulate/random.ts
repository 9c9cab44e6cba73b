import { seededRandom, type SeededRandom } from '../chaos/harness/seeded-random.ts'

export interface Random extends SeededRandom {
  readonly bytes: (count: number) => Uint8Array
  hex(bytes: number): `0x${string}`
}

/**
 * A stream of its own for each name: what one part of a run draws does not change what another draws, so a history stays
 * close to itself when a part of it is left out.
 */
export function randomOf(seed: number, name: string): Random {
  let mixed = seed ^ 0x811c9dc5
  for (let place = 0; place < name.length; place += 1)
    mixed = Math.imul(mixed ^ name.charCodeAt(place), 0x01000193)
  const random = seededRandom(mixed)
  const bytes = (count: number): Uint8Array =>
    Uint8Array.from({ length: count }, () => random.between(0, 256))
  return { ...random, bytes, hex: (count) => `0x${Buffer.from(bytes(count)).toString('hex')}` }
}
