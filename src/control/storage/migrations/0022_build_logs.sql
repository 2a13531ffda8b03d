-- The output of image builds, in pieces. No foreign key to the image: the log of a failed build can be read after the
-- image is gone.
create table build_logs (
  id bigint generated always as identity primary key,
  image text not null,
  at timestamptz(3) not null,
  text text not null
);
create index build_logs_of_image on build_logs (image, id);
create index build_logs_by_time on build_logs (at);
