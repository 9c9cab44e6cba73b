import { createHash } from 'node:crypto'

const given = process.env['FUZZ_SEED']

/** Everything random in the tests follows from it. One number for `npm test`; `npm run fuzz` draws its own and prints it. */
export const SEED = given === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(given ?? 20_261_122)

let drawn = 0

/** The next bytes of a stream that is the same in every run of a test file and differs from file to file. */
export function randomBytes(size: number): Buffer {
  const blocks: Buffer[] = []
  for (let length = 0; length < size; length += 32) {
    drawn += 1
    blocks.push(createHash('sha256').update(`${SEED} ${process.argv[1]} ${drawn}`).digest())
  }
  return Buffer.concat(blocks).subarray(0, size)
}

/** 32 bytes, as private keys and nonces are written. */
export function randomHex(): `0x${string}` {
  return `0x${randomBytes(32).toString('hex')}`
}
