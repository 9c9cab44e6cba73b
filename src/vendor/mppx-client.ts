export { Mppx, tempo } from 'mppx/client'
