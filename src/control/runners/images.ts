// The images that each runner has, as the runner last reported to control.
import type { Piece, Sql } from '../storage/database.ts'

export const addToRunner = async (sql: Sql, runnerId: string, name: string): Promise<void> => {
  await sql`
    update runners set images = array_append(images, ${name}) where id = ${runnerId} and not ${name} = any(images)`
}

export const takeFromRunner = async (sql: Sql, runnerId: string, name: string): Promise<void> => {
  await sql`
    update runners set images = array_remove(images, ${name}) where id = ${runnerId} and ${name} = any(images)`
}

/**
 * Removes the image from every runner's list of images. A runner that still has the image adds it again with its next
 * report.
 */
export const takeFromRunners = async (sql: Sql, name: string): Promise<void> => {
  await sql`update runners set images = array_remove(images, ${name}) where ${name} = any(images)`
}

/**
 * A statement that removes images from the lists of all runners, so that control places no new sandbox with these images.
 * `names`: a subquery.
 */
export const takeFromAllRunners = (sql: Sql, names: Piece): Piece => sql`
  update runners set images = array(select unnest(images) except ${names})
  where images && array(${names})`
